"""The processes a side needs: a store, runners, a stand-in LLM. They share one plan.

Concurrency 0 means agent-lightning's own runner, which plays one episode at a time.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.rollout_sides import standin_llm
from common.settings import ROOT
from common.startup import collect_rarely
from episodes import registry
from training.setup.plan import EnginePlan, OutputPlan, Plan, ProxyPlan, StorePlan
from training.setup.ports import free_port

AGENT = registry.get("sql")
START_SECONDS = 300.0  # enough for a busy machine
STOP_SECONDS = 15.0
POLL_SECONDS = 0.2  # of agent-lightning's runners, between two looks into the store
QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


@contextmanager
def process(*command: str) -> Iterator[None]:
    """Run a Python module while the block runs. Its output goes to standard error."""
    started = subprocess.Popen(
        [sys.executable, "-m", *command], cwd=ROOT, env={**os.environ, **QUIET}, stdout=sys.stderr
    )
    try:
        yield
    finally:
        started.terminate()
        try:
            started.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            started.kill()


def background(
    function: Callable[..., None], *arguments: str | float
) -> AbstractContextManager[None]:
    """Run a function of this package in a process of its own while the block runs."""
    return process(__spec__.name, function.__module__, function.__name__, json.dumps(arguments))


def wait_for(port: int, path: str) -> str:
    """Return a server's address once it answers. Raises TimeoutError: not within 300 s."""
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address + path, timeout=5):
                return address
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"{address}{path} did not answer within {START_SECONDS:.0f} s")


@contextmanager
def llm(latency: float, calls: int) -> Iterator[str]:
    """Yield the host:port of a stand-in LLM."""
    port = free_port("127.0.0.1")
    with background(standin_llm.serve, port, latency, calls):
        yield wait_for(port, "/health").removeprefix("http://")


@contextmanager
def store() -> Iterator[str]:
    port = free_port("127.0.0.1")
    with background(serve_store, port):
        yield wait_for(port, "/v1/agl/health")


def serve_store(port: int) -> None:
    """Serve the store without a token, which agent-lightning's own clients would not send."""
    from training.store.__main__ import serve

    asyncio.run(serve("127.0.0.1", port, None))


@contextmanager
def stores_with_runners(*sizes: tuple[int, int, int]) -> Iterator[list[str]]:
    """Yield addresses of stores, each with runners for (processes, concurrency, max_turns)."""
    with ExitStack() as stack:
        addresses = [stack.enter_context(store()) for _ in sizes]
        for address, size in zip(addresses, sizes, strict=True):
            stack.enter_context(background(run_runners, address, *size))
        yield addresses


def run_runners(address: str, count: int, concurrency: int, max_turns: int) -> None:
    collect_rarely()
    from episodes.lit_agent import EpisodeAgent
    from training.start.run import run

    agent = EpisodeAgent(AGENT, turns=(max_turns, max_turns))
    if not concurrency:
        run_agl_runners(agent, address, count)
        return
    plan = plan_for(address, Path(os.devnull), max_turns, ProxyPlan())
    store = replace(plan.store, role="runner", n_runners=count, concurrency=concurrency)
    plan = replace(plan, store=store)
    run(agent, None, plan, 1, time.time())  # type: ignore[arg-type]


def run_agl_runners(agent: Any, address: str, count: int) -> None:
    import agentlightning as agl

    from training.runners.processes import KeptRunners
    from training.store.store_client import StoreClient

    tracer = agl.OtelTracer()
    runner = agl.LitAgentRunner[Any](tracer=tracer, poll_interval=POLL_SECONDS)
    store = StoreClient(address)
    strategy = KeptRunners("runner", count)
    agl.Trainer(n_runners=count, tracer=tracer, runner=runner, store=store, strategy=strategy).fit(
        agent
    )


def plan_for(address: str, run_dir: Path, max_turns: int, proxy: ProxyPlan) -> Plan:
    """Return the plan of a side: an external store, and otherwise the training command's plan."""
    return Plan(
        EnginePlan("cpu", "standin", max_turns, 1.0, 96, episode_timeout=120.0),
        StorePlan(managed=False, external_address=address),
        proxy,
        OutputPlan(run_dir),
    )


if __name__ == "__main__":
    getattr(import_module(sys.argv[1]), sys.argv[2])(*json.loads(sys.argv[3]))
