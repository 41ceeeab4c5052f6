"""How agents reach the policy: the LLM proxy before vLLM's servers, and resources that name it.

Rollouts of a prompt group are given the same server, whose prefix cache their turns find warm.
"""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import orjson
from agentlightning import LLMProxy, ProxyLLM
from agentlightning.llm_proxy import ModelConfig
from agentlightning.utils.server_launcher import (
    PythonServerLauncher,
    PythonServerLauncherArgs,
    noop_context,
)
from litellm.proxy._types import LitellmUserRoles, UserAPIKeyAuth
from litellm.proxy.proxy_server import app as litellm_app
from litellm.proxy.proxy_server import user_api_key_auth
from litellm.proxy.shutdown.graceful_shutdown_manager import GracefulShutdownManager
from litellm.types.utils import all_litellm_params
from omegaconf import DictConfig
from starlette.middleware.cors import CORSMiddleware

from common.access import TOKEN, Guard
from common.connections import bound_launcher
from episodes.lit_agent import RESOURCE
from training.proxy.direct import HEALTH, direct_app
from training.proxy.gate import CallGate, RequestSeeds
from training.proxy.middleware import CALL, RecordingMiddleware
from training.proxy.recorder import CallRecorder
from training.setup.plan import Plan, RunStopped
from training.setup.ports import free_port, require_free
from training.store.store_client import StoreClient

START_SECONDS = 90.0
MOST_BYTES = 32 * 2**20  # of a call: the messages of an episode so far
# Parameters by which a request's body decides more than the completion in litellm: another
# address, another key, what is called back.
NOT_THE_CALLERS = {*all_litellm_params, "base_url", "user_config"} - {"metadata"}


class PolicyAccess:
    """Starts, publishes, checks and stops what stands between agents and vLLM."""

    def __init__(
        self, plan: Plan, config: DictConfig, servers: list[str], store: StoreClient
    ) -> None:
        self.engine = plan.engine
        self.place = plan.proxy
        self.token = plan.store.token
        self.model = config.actor_rollout_ref.model.path
        self.log_probs = bool(config.actor_rollout_ref.rollout.calculate_log_probs)
        self.config = config
        self.servers = {}
        for number, server in enumerate(servers):
            self.servers[f"policy-{number}"] = f"http://{server}"
        self.store = store
        self.gate = CallGate()
        self.seeds = RequestSeeds(int(config.data.seed)) if plan.engine.deterministic else None
        self.resources: dict[str, list[str]] = {"train": [], "val": []}
        self.address = ""
        self.proxy: LLMProxy | PythonServerLauncher | None = None

    async def start(self) -> None:
        """Start the proxy, and publish resources for training and validation in the store.

        The proxy runs in a thread of the trainer's actor, so that it ends with it.
        """
        host = self.place.host
        port = self.place.port or free_port(host)
        require_free(host, port, "LLM_PROXY_PORT")
        launcher = PythonServerLauncherArgs(
            host=host,
            port=port,
            access_host=_reachable(host),
            launch_mode="thread",
            healthcheck_url=HEALTH,
            startup_timeout=START_SECONDS,
            log_level=logging.WARNING,
        )
        if self.place.kind == "direct":
            app = direct_app(self.servers, self.model, self.log_probs, self.token)
            server = PythonServerLauncher(app, launcher, noop_context())
            self.proxy = server
        else:
            self.proxy = self._litellm_proxy(launcher)
            server = self.proxy.server_launcher
        self.recorder = CallRecorder(StoreClient(self.store.server_address_root, self.token))
        recorded = RecordingMiddleware(server.app, self.recorder, self.gate, self.seeds)
        guarded: Any = Guard(
            recorded, self.token, MOST_BYTES, free=[HEALTH], problem=problem_of, serves=serves
        )
        server.app = guarded
        bound_launcher(server)
        public = self.place.public_host or _reachable(host)
        self.address = public.rstrip("/") if "://" in public else f"http://{public}:{port}"
        await self.proxy.start()
        await self.publish()

    def _litellm_proxy(self, launcher: PythonServerLauncherArgs) -> LLMProxy:
        """Return agent-lightning's proxy without its middleware."""
        # The agent's: litellm would take it for its own, and not start
        os.environ.pop("DATABASE_URL", None)
        # A proxy that ran before in this process left litellm "shutting down"
        GracefulShutdownManager.reset()

        async def anyone() -> UserAPIKeyAuth:
            return UserAPIKeyAuth(user_role=LitellmUserRoles.INTERNAL_USER)

        litellm_app.dependency_overrides[user_api_key_auth] = anyone
        inner = [one for one in litellm_app.user_middleware if one.cls is not CORSMiddleware]
        litellm_app.user_middleware[:] = inner
        models: list[ModelConfig] = []
        for name, url in self.servers.items():
            params = {
                "model": f"hosted_vllm/{self.model}",
                "api_base": f"{url}/v1",
                # By its name: agent-lightning writes this into a file.
                "api_key": f"os.environ/{TOKEN}",
            }
            models.append({"model_name": name, "litellm_params": params})
        return LLMProxy(
            store=self.store,
            model_list=models,
            middlewares=[],
            callbacks=["return_token_ids", "logprobs"] if self.log_probs else ["return_token_ids"],
            launcher_args=launcher,
        )

    async def publish(self) -> None:
        """Name every server to training and validation, with the sampling of verl's tree."""
        rollout = self.config.actor_rollout_ref.rollout
        for mode, source in (("train", rollout), ("val", rollout.val_kwargs)):
            sampling = {
                "temperature": float(source.temperature),
                "top_p": float(source.top_p),
                "top_k": int(source.top_k),
                "max_tokens": self.engine.max_tokens,
            }
            for name in self.servers:
                llm = ProxyLLM(endpoint=self.address, model=name, sampling_parameters=sampling)
                added = await self.store.add_resources({RESOURCE: llm})
                self.resources[mode].append(added.resources_id)

    @contextmanager
    def changing_weights(self, step: int) -> Iterator[None]:
        """Hold calls back while the block gives vLLM the weights that `step` made."""
        self.gate.close(self.engine.episode_timeout)
        try:
            yield
            self.serves_weights_of(step)
        finally:
            self.gate.open()

    def serves_weights_of(self, step: int) -> None:
        if self.seeds is not None:
            self.seeds.weights_of(step)

    def resource(self, mode: str, group: int) -> str:
        """Return the resource of a prompt group. The servers take groups in turn."""
        published = self.resources[mode]
        return published[group % len(published)]

    async def stop(self) -> None:
        if self.proxy is not None:
            await self.proxy.stop()

    async def check_engine(self) -> None:
        """Raise RunStopped if vLLM or the proxy does not answer."""
        places = [("the LLM proxy", self.address + HEALTH)]
        places += [("vLLM", f"{server}/health") for server in self.servers.values()]
        async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
            for name, url in places:
                try:
                    (await client.get(url)).raise_for_status()
                except httpx.HTTPError as error:
                    raise RunStopped(
                        f"{name} at {url} does not answer ({type(error).__name__}). Look for its "
                        "last words in the run folder's logs (memory?), then resume with --resume."
                    ) from error


def serves(method: str, path: str) -> bool:
    """Return whether a request is a runner's call or a health check, of litellm's 700 routes."""
    if method == "GET":
        return path == HEALTH
    return method == "POST" and CALL.fullmatch(path) is not None


def problem_of(path: str, body: bytes) -> str | None:
    """Return what is wrong with a call's body: no JSON, or parameters that the run decides."""
    if path == HEALTH:
        return None
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return f"the body is no JSON: {error}"
    if not isinstance(request, dict):
        return "the body is no JSON object"
    if request.get("stream"):
        return "a stream is not recorded, so nothing could be learned from it; leave `stream` out"
    if request.get("n") not in (None, 1):
        return "only the first of several replies is recorded, and would be learned; leave `n` out"
    if found := sorted(NOT_THE_CALLERS.intersection(request)):
        return f"the body sets {', '.join(found)}, which the run decides; leave it out"
    return None


def _reachable(host: str) -> str:
    return socket.gethostname() if host == "0.0.0.0" else host
