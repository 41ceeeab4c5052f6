"""What the end of a runner process means, decided without an engine."""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil
import pytest

from tests.messages import missing
from training.engine.watchdog import REPEATS_SECONDS, RESTARTS, WINDOW_SECONDS
from training.runners import processes as runners
from training.runners.processes import Keeper, KeptRunners, Runner
from training.setup.plan import RunStopped
from training.store.store_client import StoreClient, worker_name

FORK = multiprocessing.get_context("fork")


def ended(begun: float = 0.0, replaced: int | None = None) -> Runner:
    return Runner(0, None, begun, replaced)


def test_runners_are_started_again_so_often_in_so_many_minutes(keeper):
    kept, _ = keeper(os._exit)
    for second in range(RESTARTS):
        assert kept.refusal(ended(), -9, second) is None
    assert kept.refusal(ended(), -9, WINDOW_SECONDS - 1) is not None
    assert kept.refusal(ended(), -9, WINDOW_SECONDS) is None, "the first of them is long ago"
    assert kept.refusal(ended(), -9, WINDOW_SECONDS + 0.5) is not None


@pytest.mark.parametrize(
    ("code", "replaced", "lived", "again"),
    [(-9, -9, 0, False), (-9, -9, REPEATS_SECONDS, True), (-9, -11, 0, True), (3, None, 0, True)],
)
def test_a_cause_that_repeats_is_not_tried_again(code, replaced, lived, again, keeper):
    refusal = keeper(os._exit)[0].refusal(ended(100, replaced), code, 100 + lived)
    assert (refusal is None) == again


@pytest.fixture
def keeper(monkeypatch):
    """A keeper whose runners are processes that do `work`, and what it says; no store need be told."""

    async def nobody(*_: Any) -> int:
        return 0

    monkeypatch.setattr(runners, "give_up", nobody)
    monkeypatch.setattr(runners, "END_SECONDS", 0.5)

    def make(work: Callable[[int], None]) -> tuple[Keeper, list[str]]:
        def start(number: int) -> Any:
            process = FORK.Process(target=work, args=(number,), name=f"runner-{number}")
            process.start()
            return process

        said: list[str] = []
        return Keeper(start, StoreClient("http://127.0.0.1:9"), said.append), said

    return make


def test_what_ends_at_once_is_started_once_more_and_the_others_go_on(keeper):
    kept, said = keeper(lambda number: time.sleep(600) if number else os._exit(3))
    assert kept.keep(2, lambda: len(said) == 2) == 3
    assert not missing(said[0], "exit code 3", "too: 2")
    assert not missing(said[1], "not", "too: 1")
    assert multiprocessing.active_children() == []


def test_the_rollouts_of_a_runner_that_ended_are_given_back_at_once(keeper, monkeypatch):
    """Else they wait a minute until the store misses its heartbeats."""
    kept, _ = keeper(lambda number: os._exit(3))
    begun: list[Any] = []
    given_back: list[str] = []
    start = kept.start

    def started(number: int) -> Any:
        begun.append(start(number))
        return begun[-1]

    async def note(_: Any, worker: str) -> int:
        given_back.append(worker)
        return 0

    monkeypatch.setattr(kept, "start", started)
    monkeypatch.setattr(runners, "give_up", note)
    kept.keep(1, lambda: False)
    assert len(begun) == 2
    assert given_back == [worker_name(process.pid) for process in begun]


def test_a_frozen_runner_does_not_outlive_the_run(keeper):
    kept, _ = keeper(lambda number: os.kill(os.getpid(), signal.SIGSTOP))
    assert kept.keep(1, lambda: True) == 0
    assert multiprocessing.active_children() == []


def test_a_runner_does_not_outlive_a_killed_keeper():
    """It would play the next run's rollouts, with this run's agent."""
    begun = FORK.SimpleQueue()

    async def plays(*_: Any) -> None:
        begun.put(os.getpid())
        await asyncio.sleep(600)

    strategy = KeptRunners("both", 1)
    store = StoreClient("http://127.0.0.1:9")
    (kept,) = strategy._spawn_runners(plays, store, FORK.Event(), ctx=FORK)
    runner = psutil.Process(begun.get())
    kept.kill()
    kept.join()
    with suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
        runner.wait(30)
    alive = runner.is_running() and runner.status() != psutil.STATUS_ZOMBIE
    if alive:
        runner.kill()
    assert not alive


@pytest.mark.timeout(60)
def test_the_end_of_the_last_runner_stops_the_run():
    async def fails(*_: Any) -> None:
        raise RuntimeError("agent-lightning has logged it")

    strategy = KeptRunners("both", 1)
    store = StoreClient("http://127.0.0.1:9")
    (kept,) = strategy._spawn_runners(fails, store, FORK.Event(), ctx=FORK)
    strategy.look()
    kept.kill()
    kept.join()
    with pytest.raises(RunStopped, match=r"-9 .*--resume"):
        strategy.look()
