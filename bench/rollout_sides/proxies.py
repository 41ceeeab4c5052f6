"""Calls a second through one proxy worker before an LLM that answers at once: agent-lightning's, ours, and direct.

    python -m bench.rollout_sides.proxies PORT KIND STORE_ADDRESS SERVER   (a proxy of ours)

Each proxy is a process of its own, all write into one store; 16 calls are in flight.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import aiohttp
from agentlightning import LightningStoreClient
from omegaconf import OmegaConf

from bench.rollout_sides.processes import llm, plan_for, process, store, wait_for
from sql_agent.prompts import TOOL, first_messages
from training.direct import HEALTH
from training.ports import free_port
from training.proxy import PolicyAccess

CALLS, IN_FLIGHT, ROLLOUTS = 400, 16, 50
MODEL = "policy-0"


def calls_per_second(rounds: int) -> dict[str, float]:
    """Medians of interleaved rounds, by proxy."""
    with ExitStack() as stack:
        server, address = stack.enter_context(llm(0.0, 2)), stack.enter_context(store())
        ports = {kind: free_port("127.0.0.1") for kind in ("agl", "litellm", "direct")}
        for kind, port in ports.items():
            command = (
                ("bench.rollout_sides.agl_proxy", str(port), address, MODEL, "standin", f"http://{server}")
                if kind == "agl"
                else ("bench.rollout_sides.proxies", str(port), kind, address, server)
            )
            stack.enter_context(process(*command))
        for port in ports.values():
            wait_for(f"http://127.0.0.1:{port}", HEALTH)
        return asyncio.run(_measure(address, ports, rounds))


async def _measure(address: str, ports: dict[str, int], rounds: int) -> dict[str, float]:
    client = LightningStoreClient(address)
    rollouts = [await client.start_rollout(input={}) for _ in range(ROLLOUTS)]
    await client.close()
    routes = [f"/rollout/{rollout.rollout_id}/attempt/{rollout.attempt.attempt_id}" for rollout in rollouts]
    speeds: dict[str, list[float]] = {kind: [] for kind in ports}
    for round_number in range(rounds + 1):
        for kind, port in ports.items():
            speed = await _calls(f"http://127.0.0.1:{port}", routes)
            if round_number:  # the first warms up
                speeds[kind].append(speed)
    return {kind: round(median(values), 1) for kind, values in speeds.items()}


async def _calls(address: str, routes: list[str]) -> float:
    body = {"model": MODEL, "messages": first_messages("第一种药治什么病？"), "tools": [TOOL], "temperature": 1.0}
    waiting = iter(range(CALLS))
    async with aiohttp.ClientSession(headers={"Authorization": "Bearer none"}) as session:

        async def worker() -> None:
            for number in waiting:
                url = f"{address}{routes[number % len(routes)]}/v1/chat/completions"
                async with session.post(url, json=body) as reply:
                    reply.raise_for_status()
                    await reply.read()

        started = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
        return CALLS / (time.perf_counter() - started)


async def _serve(port: int, kind: str, address: str, server: str) -> None:
    sampling = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
    rollout = {**sampling, "val_kwargs": sampling, "calculate_log_probs": False}
    config = OmegaConf.create({"actor_rollout_ref": {"model": {"path": "standin"}, "rollout": rollout}})
    plan = plan_for(address, Path("."), 2, proxy=kind, proxy_port=port)
    await PolicyAccess(plan, config, [server], LightningStoreClient(address)).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), *sys.argv[2:5]))
