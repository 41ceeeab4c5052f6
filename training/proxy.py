"""The LLM proxy between agents and verl's vLLM servers, and what runners are told about it.

agent-lightning's LLMProxy (litellm) asks vLLM for token ids and traces every call as spans into the store. Two
resources name it: one for training, one for validation, which differ in sampling parameters. These come from verl's
tree alone, so that agent and trainer cannot sample differently.
"""

from __future__ import annotations

import logging
from typing import Any

import httpx
from agentlightning import LightningStore, LLMProxy, ProxyLLM
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


class Proxy:
    """Starts, publishes, checks and stops one LLMProxy."""

    def __init__(self, plan: Plan, config: DictConfig, servers: list[str], store: LightningStore) -> None:
        self.plan = plan
        self.config = config
        self.servers = servers
        self.store = store
        self.resources: dict[str, str] = {}
        self.llm_proxy = LLMProxy(
            store=store,
            model_list=[_backend(server, config.actor_rollout_ref.model.path) for server in servers],
            launcher_args=PythonServerLauncherArgs(
                host=plan.proxy_host,
                port=plan.proxy_port or free_port(plan.proxy_host),
                access_host=plan.proxy_public_host or _reachable(plan.proxy_host),
                launch_mode="thread",
                healthcheck_url="/health/liveliness",
                startup_timeout=START_SECONDS,
                log_level=logging.WARNING,
            ),
        )

    async def start(self) -> None:
        """Start the proxy and publish both resources in the store."""
        await self.llm_proxy.start()
        for mode in ("train", "val"):
            resource = ProxyLLM(
                endpoint=self.llm_proxy.server_launcher.access_endpoint,
                model=MODEL_NAME,
                sampling_parameters=sampling_parameters(self.config, self.plan.max_tokens, mode),
            )
            self.resources[mode] = (await self.store.add_resources({RESOURCE: resource})).resources_id

    async def stop(self) -> None:
        """Stop the proxy."""
        await self.llm_proxy.stop()

    async def check_engine(self) -> None:
        """Ask vLLM and the proxy whether they live.

        Raises:
            RunStopped: one of them does not answer.
        """
        own = f"{self.llm_proxy.server_launcher.access_endpoint}/health/liveliness"
        async with httpx.AsyncClient(timeout=10) as client:
            for name, url in [("the LLM proxy", own)] + [("vLLM", f"http://{s}/health") for s in self.servers]:
                try:
                    (await client.get(url)).raise_for_status()
                except httpx.HTTPError as error:
                    raise RunStopped(
                        f"{name} at {url} does not answer ({type(error).__name__}). Look for its last words in the "
                        "run's log (memory?), then resume with --resume."
                    ) from error


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


def _backend(server: str, model: str) -> ModelConfig:
    return {
        "model_name": MODEL_NAME,
        "litellm_params": {"model": f"hosted_vllm/{model}", "api_base": f"http://{server}/v1"},
    }


def _reachable(host: str) -> str | None:
    """A bound address as others see it; None (agent-lightning's guess) where the proxy listens everywhere."""
    return None if host in ("0.0.0.0", "::") else host
