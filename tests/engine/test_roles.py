"""Store, runners and trainer as three processes; and tracing in the runners instead of the proxy."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.runs import ROOT, Run, free_port

pytestmark = pytest.mark.engine


@pytest.fixture
def store() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "training.store", "serve", "--port", str(port)], cwd=ROOT)
    address = f"http://127.0.0.1:{port}"
    wait_until_healthy(address)
    yield address
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) in (0, 130)


def wait_until_healthy(address: str) -> None:
    from training.plan import ConfigError
    from training.store import check_external

    end = time.time() + 60
    while True:
        try:
            return check_external(address)
        except ConfigError:
            assert time.time() < end
            time.sleep(0.5)


def test_three_processes(store: str, start: Callable[..., Run]) -> None:
    external = ("--ci-fast", "--llm-proxy", "--external-store-address", store)
    runners = start(*external, "--n-runners", "2", AGL_MANAGED_STORE="0", AGL_CURRENT_ROLE="runner")
    trainer = start(*external, AGL_MANAGED_STORE="0", AGL_CURRENT_ROLE="algorithm")
    assert trainer.wait() == 0, trainer.output
    summary = trainer.summary()
    assert summary["store"] == "external"
    assert summary["rollouts"]["finished"] == 16
    assert summary["generated_tokens"] == summary["trained_tokens"] > 0
    assert runners.process.poll() is None, "runners stay for the next trainer"
    os.killpg(runners.process.pid, signal.SIGINT)
    assert runners.wait() == 130
    assert runners.alive() == []
    assert trainer.alive() == []


def test_tracing_in_the_runners(cold: Run) -> None:
    played = cold.lines("episodes.jsonl")
    assert all(row["triplets"] == row["calls"] == row["counters"]["turns"] > 0 for row in played)
    summary = cold.summary()
    assert summary["generated_tokens"] == summary["trained_tokens"] > 0
