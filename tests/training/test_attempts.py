"""One attempt in a runner, from its slot to its end, and a runner from its beginning to its end;
no store is asked.

Keeps of docs/architecture.md, "Runners and the store": deadlines, and that an attempt which is not
ours any more has no result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import agentlightning as agl
import pytest
from agentlightning.types import Attempt, AttemptedRollout, Rollout

from tests.training.places import Store, attempted, runner_of
from training.runners import episode_runner as runner_module
from training.runners.episode_runner import EpisodeRunner, Slot, Threads, _is_current


def playing(runner: EpisodeRunner, episode: Coroutine[Any, Any, Any]) -> tuple[Slot, list[Any]]:
    """A slot whose episode is this one, and what is told of its end."""
    slot, ends = Slot(attempted("a"), 0.0), list[Any]()

    async def finish(rollout: AttemptedRollout, episode: asyncio.Task[Any]) -> None:
        ends.append((rollout.rollout_id, slot.over, episode.done(), episode))

    async def play(rollout: AttemptedRollout) -> Any:
        assert rollout is slot.rollout
        return await episode

    runner._episode = play  # type: ignore[method-assign]
    runner._finish = finish  # type: ignore[method-assign, assignment]
    return slot, ends


async def test_an_episode_s_end_is_told_when_only_its_report_is_left() -> None:
    """Not over yet, the next heartbeat could find it superseded and cancel its report."""
    runner = runner_of(Store())
    slot, ends = playing(runner, asyncio.sleep(0, "spans"))
    await runner._play(slot)
    ((name, over, done, episode),) = ends
    assert (name, over, done, episode.result()) == ("a", True, True, "spans")
    assert not runner._stray


async def test_an_episode_that_hangs_is_cancelled_at_its_deadline_and_told_as_hanging() -> None:
    """Told as ended it would be trained; never told, its slot would be taken for ever."""
    runner, released = runner_of(Store()), asyncio.Event()
    runner.deadline = 0.01

    async def stubborn() -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    slot, ends = playing(runner, stubborn())
    await asyncio.wait_for(runner._play(slot), 30)
    ((_, over, done, episode),) = ends
    assert (over, done) == (True, False)
    assert runner._stray == {episode}, "kept, or it would vanish while it runs"
    assert episode.cancelling() == 1
    released.set()
    await asyncio.wait({episode})
    await asyncio.sleep(0)
    assert not runner._stray


async def test_an_attempt_that_is_not_ours_any_more_is_cancelled_and_has_no_end() -> None:
    runner, cancelled = runner_of(Store()), asyncio.Event()

    async def long() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    slot, ends = playing(runner, long())
    task = asyncio.create_task(runner._play(slot))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(cancelled.wait(), 30)
    assert ends == []


async def test_a_result_that_is_lost_ends_no_runner(caplog: pytest.LogCaptureFixture) -> None:
    runner = runner_of(Store())
    slot, _ = playing(runner, asyncio.sleep(0))

    async def refuse(*told: Any) -> None:
        raise ConnectionError("gone")

    runner._finish = refuse  # type: ignore[method-assign]
    await runner._play(slot)
    assert caplog.messages == ["me: the result of rollout a is lost"]


async def test_a_place_is_taken_while_its_attempt_plays_and_free_after_it() -> None:
    runner, release, played = runner_of(Store()), asyncio.Event(), list[Slot]()

    async def play(slot: Slot) -> None:
        played.append(slot)
        await release.wait()

    runner._play = play  # type: ignore[method-assign]
    before = time.monotonic()
    runner._start(attempted("a"))
    slot = runner._slots["a-1"]
    assert (slot.rollout.rollout_id, slot.over) == ("a", False)
    assert before <= slot.begun <= time.monotonic()
    await asyncio.sleep(0)
    assert played == [slot]
    assert not runner._freed.is_set()
    release.set()
    assert slot.task
    await slot.task
    await asyncio.sleep(0)
    assert runner._slots == {}
    assert runner._freed.is_set()


@pytest.mark.parametrize("by", ["event", "cancellation"])
async def test_a_runner_takes_and_beats_until_it_is_stopped_and_then_closes(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It returns however it is stopped: an error would make agent-lightning stop the other runners."""
    monkeypatch.setattr(runner_module, "STOP_POLL_SECONDS", 0.001)
    store, stopped, doing = Store(), SimpleNamespace(is_set=lambda: False), list[str]()
    if by == "event":  # agent-lightning's own client has none
        store.token = "secret"  # type: ignore[attr-defined]
    runner = EpisodeRunner(3, deadline=30)
    runner.store, runner.name = store, "me"  # type: ignore[assignment]

    async def work(name: str) -> None:
        doing.append(name)
        try:
            await asyncio.Event().wait()
        finally:
            doing.append(f"{name} ends")

    async def close() -> None:
        await asyncio.sleep(0)
        doing.append("closes")

    runner._take, runner._beat, runner._close = lambda: work("takes"), lambda: work("beats"), close  # type: ignore
    task = asyncio.create_task(runner.iter(event=stopped if by == "event" else None))  # type: ignore[arg-type]
    await asyncio.sleep(0.02)
    assert doing == ["takes", "beats"]
    assert (runner._slots, runner._stray, runner._resources, runner._freed.is_set()) == (
        {},
        set(),
        {},
        False,
    )
    assert runner._handover.store is store
    assert runner._sender._headers.get("Authorization") == (
        "Bearer secret" if by == "event" else None
    )
    assert isinstance(asyncio.get_running_loop()._default_executor, Threads), (
        "asyncio's own are few"
    )  # type: ignore
    if by == "event":
        stopped.is_set = lambda: True
    else:
        task.cancel()
    await asyncio.wait_for(task, 30)
    assert doing[2:] == ["takes ends", "beats ends", "closes"]
    await runner._handover.close()


def test_a_runner_is_its_agent_s() -> None:
    agent: agl.LitAgent[Any] = agl.LitAgent()
    runner = EpisodeRunner(3, deadline=30)
    runner.init(agent)
    assert runner.agent is agent
    assert agent.get_runner() is runner
    assert (runner.concurrency, runner.deadline, runner.heartbeat) == (
        3,
        30,
        runner_module.HEARTBEAT_SECONDS,
    )


def known(
    status: str = "running", attempt: str = "mine", attempt_status: str = "running"
) -> AttemptedRollout:
    of = Attempt(
        rollout_id="r", attempt_id=attempt, sequence_id=1, start_time=0.0, status=attempt_status
    )
    return AttemptedRollout(rollout_id="r", input={}, start_time=0.0, status=status, attempt=of)


@pytest.mark.parametrize(
    ("rollout", "current"),
    [
        (known(), True),
        (known("preparing", attempt_status="preparing"), True),
        (
            known(attempt="another's"),
            False,
        ),  # superseded: kept alive, two attempts would be played to the end
        (known(attempt_status="timeout"), False),
        (known(attempt_status="unresponsive"), False),
        (known(attempt_status="failed"), False),
        (known("cancelled"), False),
        (known("succeeded", attempt_status="succeeded"), False),
        (Rollout(rollout_id="r", input={}, start_time=0.0, status="queuing"), False),
        (None, False),  # released
    ],
)
def test_an_attempt_goes_on_only_while_the_store_waits_for_it(
    rollout: Rollout | None, current: bool
) -> None:
    assert _is_current(rollout, "mine") == current
