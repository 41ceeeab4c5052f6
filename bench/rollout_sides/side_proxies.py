"""Calls a second through one proxy worker before an LLM that answers at once: agent-lightning's,
ours, and direct.

Each proxy is a process of its own, and all write into one store. 16 calls are in flight.
"""

import asyncio
import logging
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import aiohttp
from agentlightning import LightningStoreClient, LLMProxy
from agentlightning.llm_proxy import ModelConfig
from agentlightning.utils.server_launcher import PythonServerLauncherArgs

from bench._harness import at_once, medians
from bench.rollout_sides.fixed_latency import QUESTION, manager
from bench.rollout_sides.side_processes import (
    AGENT,
    START_SECONDS,
    background,
    llm,
    store,
    wait_for,
)
from common.access import TOKEN
from sql_agent.prompts import first_messages
from training.proxy.direct import HEALTH
from training.setup.ports import free_port

CALLS = 400
IN_FLIGHT = 16
ROLLOUTS = 50
MODEL = "policy-0"


def calls_per_second(rounds: int) -> dict[str, float]:
    """Return the calls a second by proxy."""
    with ExitStack() as stack:
        server = stack.enter_context(llm(0.0, 2))
        address = stack.enter_context(store())
        ports = {kind: free_port("127.0.0.1") for kind in ("agl", "litellm", "direct")}
        stack.enter_context(
            background(serve_agl, ports["agl"], address, MODEL, "standin", f"http://{server}")
        )
        for kind in ("litellm", "direct"):
            stack.enter_context(background(serve_ours, ports[kind], kind, address, server))
        routes = asyncio.run(_routes(address))
        sides = {
            kind: partial(_call_all, wait_for(port, HEALTH), routes) for kind, port in ports.items()
        }
        return {kind: round(CALLS / seconds, 1) for kind, seconds in medians(sides, rounds).items()}


async def _routes(address: str) -> list[str]:
    client = LightningStoreClient(address)
    rollouts = [await client.start_rollout(input={}) for _ in range(ROLLOUTS)]
    await client.close()
    return [
        f"/rollout/{rollout.rollout_id}/attempt/{rollout.attempt.attempt_id}"
        for rollout in rollouts
    ]


def _call_all(address: str, routes: list[str]) -> float:
    body = {
        "model": MODEL,
        "messages": first_messages(QUESTION),
        "tools": AGENT.tools,
        "temperature": 1.0,
    }

    async def measure() -> float:
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer none"}) as session:

            async def post(number: int) -> None:
                url = f"{address}{routes[number % len(routes)]}/v1/chat/completions"
                async with session.post(url, json=body) as reply:
                    reply.raise_for_status()
                    await reply.read()

            return await at_once(post, CALLS, IN_FLIGHT)

    return asyncio.run(measure())


def serve_ours(port: int, kind: str, address: str, server: str) -> None:
    """Serve the product's proxy until the process is stopped."""
    manager(address, Path("."), server, 2, 1, proxy=kind, port=port)
    asyncio.run(asyncio.Event().wait())


def serve_agl(port: int, address: str, name: str, model: str, server: str) -> None:
    """Serve agent-lightning's LLM proxy unchanged until the process is stopped."""
    launcher = PythonServerLauncherArgs(
        host="127.0.0.1",
        port=port,
        launch_mode="thread",
        startup_timeout=START_SECONDS,
        log_level=logging.WARNING,
    )
    backend = {
        "model": f"hosted_vllm/{model}",
        "api_base": f"{server}/v1",
        "api_key": f"os.environ/{TOKEN}",
    }

    async def serve() -> None:
        models: list[ModelConfig] = [{"model_name": name, "litellm_params": backend}]
        await LLMProxy(
            store=LightningStoreClient(address), model_list=models, launcher_args=launcher
        ).start()
        await asyncio.Event().wait()

    asyncio.run(serve())
