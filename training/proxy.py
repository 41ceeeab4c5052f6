"""How agents reach the policy: the LLM proxy before verl's vLLM servers, and the resources that name it.

agent-lightning's LLMProxy (litellm) asks vLLM for token ids and traces every call as spans into the store. Without it
(`--no-llm-proxy`) agents call vLLM themselves and their own tracer records the calls. Sampling parameters come from
verl's tree alone, so that agent and trainer cannot sample differently; training and validation differ in theirs.
"""

from __future__ import annotations

import logging
from typing import Any

import httpx
from agentlightning import LLM, LightningStore, LLMProxy, ProxyLLM
from agentlightning.llm_proxy import ModelConfig
from agentlightning.utils.server_launcher import PythonServerLauncherArgs
from omegaconf import DictConfig

from training.plan import Plan
from training.ports import free_port
from training.watch import RunStopped

logger = logging.getLogger(__name__)

MODEL_NAME = "policy"
RESOURCE = "main_llm"
START_SECONDS = 90.0
HEALTH = "/health/liveliness"


class PolicyAccess:
    """Starts, publishes, checks and stops what stands between agents and vLLM."""

    def __init__(self, plan: Plan, config: DictConfig, servers: list[str], store: LightningStore) -> None:
        self.plan = plan
        self.config = config
        self.servers = servers
        self.store = store
        self.resources: dict[str, list[str]] = {"train": [], "val": []}
        self.proxy = _make_proxy(plan, config, servers, store) if plan.llm_proxy else None

    async def start(self) -> None:
        """Start the proxy, if any, and publish resources for training and validation in the store."""
        if self.proxy is not None:
            await self.proxy.start()
        for mode, published in self.resources.items():
            for llm in self._endpoints(sampling_parameters(self.config, self.plan.max_tokens, mode)):
                published.append((await self.store.add_resources({RESOURCE: llm})).resources_id)

    def resource(self, mode: str, number: int) -> str:
        """The resource id of a mode's rollout; rollouts take turns where there are several."""
        published = self.resources[mode]
        return published[number % len(published)]

    async def stop(self) -> None:
        """Stop the proxy, if any."""
        if self.proxy is not None:
            await self.proxy.stop()

    async def check_engine(self) -> None:
        """Ask vLLM and the proxy whether they live.

        Raises:
            RunStopped: one of them does not answer.
        """
        places = [("vLLM", f"http://{server}/health") for server in self.servers]
        if self.proxy is not None:
            places.insert(0, ("the LLM proxy", self.proxy.server_launcher.access_endpoint + HEALTH))
        async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
            for name, url in places:
                try:
                    (await client.get(url)).raise_for_status()
                except httpx.HTTPError as error:
                    raise RunStopped(
                        f"{name} at {url} does not answer ({type(error).__name__}). Look for its last words in the "
                        "run folder's logs (memory?), then resume with --resume."
                    ) from error

    def _endpoints(self, sampling: dict[str, Any]) -> list[LLM | ProxyLLM]:
        if self.proxy is not None:
            endpoint = self.proxy.server_launcher.access_endpoint
            return [ProxyLLM(endpoint=endpoint, model=MODEL_NAME, sampling_parameters=sampling)]
        asking = {**sampling, "return_token_ids": True}
        model = self.config.actor_rollout_ref.model.path
        return [LLM(endpoint=f"http://{server}/v1", model=model, sampling_parameters=asking) for server in self.servers]


def sampling_parameters(config: DictConfig, max_tokens: int, mode: str) -> dict[str, Any]:
    """What every call of the policy is sampled with; top_p and top_k are sent even where they cut nothing off."""
    rollout = config.actor_rollout_ref.rollout
    source = rollout.val_kwargs if mode == "val" else rollout
    return {
        "temperature": float(source.temperature),
        "top_p": float(source.top_p),
        "top_k": int(source.top_k),
        "max_tokens": max_tokens,
    }


def _make_proxy(plan: Plan, config: DictConfig, servers: list[str], store: LightningStore) -> LLMProxy:
    """In a thread of the trainer's actor, which has no tracer of its own, so that it ends with the actor."""
    return LLMProxy(
        store=store,
        model_list=[_backend(server, config.actor_rollout_ref.model.path) for server in servers],
        launcher_args=PythonServerLauncherArgs(
            host=plan.proxy_host,
            port=plan.proxy_port or free_port(plan.proxy_host),
            access_host=plan.proxy_public_host or _reachable(plan.proxy_host),
            launch_mode="thread",
            healthcheck_url=HEALTH,
            startup_timeout=START_SECONDS,
            log_level=logging.WARNING,
        ),
    )


def _backend(server: str, model: str) -> ModelConfig:
    return {
        "model_name": MODEL_NAME,
        "litellm_params": {"model": f"hosted_vllm/{model}", "api_base": f"http://{server}/v1"},
    }


def _reachable(host: str) -> str | None:
    """A bound address as others see it; None (agent-lightning's guess) where the proxy listens everywhere."""
    return None if host in ("0.0.0.0", "::") else host
