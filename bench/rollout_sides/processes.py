"""The processes a side needs: a store, runners, a stand-in LLM; and the plan they share.

    python -m bench.rollout_sides.processes STORE_ADDRESS RUNNERS CONCURRENCY MAX_TURNS   (what `runners` starts)

Concurrency 0 means agent-lightning's own runner, which plays one episode at a time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from common.startup import collect_rarely
from training.plan import Plan
from training.ports import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
START_SECONDS = 90.0
QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


@contextmanager
def process(*command: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Python module of this project while the block runs; its output goes to standard error."""
    environment = {**os.environ, **QUIET, **variables}
    started = subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, env=environment, stdout=sys.stderr)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(15)
        except subprocess.TimeoutExpired:
            started.kill()


@contextmanager
def store() -> Iterator[str]:
    """A store of its own; gives its address."""
    port = free_port("127.0.0.1")
    with process("training.store", "serve", "--port", str(port)):
        yield wait_for(f"http://127.0.0.1:{port}", "/v1/agl/health")


@contextmanager
def llm(latency: float, calls: int) -> Iterator[str]:
    """A stand-in LLM; gives its host:port."""
    port = free_port("127.0.0.1")
    with process("bench.rollout_sides.standin", str(port), str(latency), str(calls)):
        yield wait_for(f"http://127.0.0.1:{port}", "/health").removeprefix("http://")


@contextmanager
def runners(address: str, count: int, concurrency: int, max_turns: int) -> Iterator[subprocess.Popen[bytes]]:
    """Runner processes that work for a store."""
    sizes = (str(count), str(concurrency), str(max_turns))
    with process("bench.rollout_sides.processes", address, *sizes) as started:
        yield started


@contextmanager
def stores_with_runners(*sizes: tuple[int, int, int]) -> Iterator[list[str]]:
    """A store and its runners for each (processes, concurrency, max_turns)."""
    with ExitStack() as stack:
        addresses = [stack.enter_context(store()) for _ in sizes]
        for address, size in zip(addresses, sizes, strict=True):
            stack.enter_context(runners(address, *size))
        yield addresses


def wait_for(address: str, path: str) -> str:
    """Wait until a server answers; returns its address.

    Raises:
        TimeoutError: it did not within 90 s.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address + path, timeout=5):
                return address
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"{address}{path} did not answer within {START_SECONDS:.0f} s")


def plan_for(address: str, run_dir: Path, max_turns: int, **changes: object) -> Plan:
    """The plan of a side: an external store, the rest as the training command has it."""
    settings = {"managed_store": False, "external_store_address": address, "episode_timeout": 120.0}
    fixed = {"device": "cpu", "model": "standin", "max_turns_origin": "bench", "temperature": 1.0, "max_tokens": 96}
    return Plan(run_dir=run_dir, max_turns=max_turns, **{**fixed, **settings, **changes})  # type: ignore[arg-type]


def _run(address: str, count: int, concurrency: int, max_turns: int) -> None:
    collect_rarely()
    from episodes.lit_agent import SqlAgent
    from training.run import run

    plan = plan_for(address, Path(os.devnull), max_turns, role="runner", n_runners=count, concurrency=concurrency)
    run(SqlAgent(max_turns=max_turns), None, plan, time.time())  # type: ignore[arg-type]


if __name__ == "__main__":
    _run(sys.argv[1], *json.loads(f"[{','.join(sys.argv[2:5])}]"))
