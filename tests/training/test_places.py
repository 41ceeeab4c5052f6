"""A runner's places and what it tells the store of them, to the word, with a store that only keeps
what it is told.

Keeps of docs/architecture.md, "Runners and the store": each way an attempt ends, and whose attempts
are kept alive. `test_runner.py` plays the same with real stores.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import agentlightning as agl
import pytest
from agentlightning.tracer.base import get_active_tracer

from tests.training.places import Store, attempted, runner_of
from training.runners import episode_runner as runner_module
from training.runners.episode_runner import Slot, Threads
from training.store.handover import worker_name


async def ended(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    task = asyncio.create_task(work)
    await asyncio.wait({task})
    return task


async def returns(value: Any) -> Any:
    return value


async def raises(error: BaseException) -> None:
    raise error


async def test_each_end_of_an_episode_is_reported_under_its_name() -> None:
    """As "succeeded" a hanging episode would be trained; as "failed" it would not be played again."""
    store = Store()
    runner, rollout = runner_of(store), attempted("a")
    hanging = asyncio.create_task(asyncio.Event().wait())
    for episode in (
        hanging,
        await ended(raises(asyncio.CancelledError())),
        await ended(raises(ValueError("no"))),
    ):
        await runner._finish(rollout, episode)  # type: ignore[arg-type]
    hanging.cancel()
    assert store.told == [
        ("a", "a-1", ("status", status)) for status in ("timeout", "timeout", "failed")
    ]


async def test_a_played_episode_s_spans_are_sent_as_its_attempt_s_and_before_its_end() -> None:
    store = Store()
    await runner_of(store)._finish(attempted("a"), await ended(returns(["one", "two"])))
    spans = [("a", "a-1", "one"), ("a", "a-1", "two")]
    assert store.told == [("http://store/v1/traces", spans), ("a", "a-1", ("status", "succeeded"))]


async def test_heartbeats_are_of_the_episodes_that_are_played_long_enough_and_still_ours() -> None:
    """An attempt kept alive beside the one that replaced it would be played to its end, and paid
    for, for nothing.
    """
    store = Store(
        *(attempted(name) for name in ("kept", "young", "reported")), attempted("lost", "cancelled")
    )
    runner = runner_of(store)
    for name, begun, over in (
        ("reported", 1.0, True),
        ("lost", 1.0, False),
        ("kept", 9.9, False),
        ("young", 10.0, False),
    ):
        task = asyncio.create_task(asyncio.sleep(30))
        runner._slots[name] = Slot(attempted(name), begun, task, over)  # type: ignore[arg-type]
    before = time.time()
    await runner._beat_for(10.0)
    asked, (name, attempt, (what, when)) = store.told
    assert asked == (("rollout_id_in", ["lost", "kept"]),)
    assert (name, attempt, what) == ("kept", "kept-1", "last_heartbeat_time")
    assert before <= when <= time.time()
    await asyncio.sleep(0)
    cancelled = {name: slot.task.cancelled() for name, slot in runner._slots.items() if slot.task}
    assert cancelled == {"reported": False, "lost": True, "kept": False, "young": False}
    store.told.clear()
    runner._slots = {"young": runner._slots["young"]}
    await runner._beat_for(10.0)
    assert store.told == [], "nothing to ask about"


async def test_an_episode_that_ends_while_the_store_is_asked_is_left_alone() -> None:
    """Its report is under way: cancelled, its result would be lost."""
    store = Store(attempted("over", "succeeded"), attempted("other"))
    runner = runner_of(store)
    over, other = (
        Slot(attempted(name), 1.0, asyncio.create_task(asyncio.sleep(30)))
        for name in ("over", "other")  # type: ignore[arg-type]
    )
    runner._slots = {"over": over, "other": other}
    answer = store.query_rollouts

    async def query(**asked: Any) -> Any:
        over.over = True
        return await answer(**asked)

    store.query_rollouts = query  # type: ignore[method-assign]
    await runner._beat_for(10.0)
    assert [told[:2] for told in store.told[1:]] == [("other", "other-1")]
    await asyncio.sleep(0)
    assert over.task is not None
    assert not over.task.cancelled()


async def test_the_runner_beats_on_after_a_store_that_was_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Store()
    runner, begun = runner_of(store), list[float]()
    runner._slots = {"a": None, "b": None}  # type: ignore[dict-item]
    done = asyncio.Event()

    async def beat_for(before: float) -> None:
        begun.append(before)
        if len(begun) == 1:
            raise ConnectionError("away")
        done.set()

    monkeypatch.setattr(runner, "_beat_for", beat_for)
    monkeypatch.setattr(runner_module, "time", SimpleNamespace(monotonic=lambda: 100.0))
    beating = asyncio.create_task(runner._beat())
    await asyncio.wait_for(done.wait(), 30)
    beating.cancel()
    assert store.told[:2] == [("me", {"episodes": 2})] * 2
    assert begun == [100.0 - runner.heartbeat / 2] * 2, "episodes of half a heartbeat and more"


@pytest.mark.parametrize(("concurrency", "playing", "limit"), [(20, 0, 8), (5, 2, 3)])
async def test_as_many_are_taken_as_there_are_places_and_not_all_at_once(
    concurrency: int, playing: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, started, over = Store(), list[str](), asyncio.Event()
    runner = runner_of(store, concurrency)
    runner._slots = dict.fromkeys(map(str, range(playing)))  # type: ignore[assignment]
    monkeypatch.setattr(runner, "_start", lambda rollout: started.append(rollout.rollout_id))
    asked = list[int]()

    async def queued() -> None:
        asked.append(len(store.told))

    async def pause(seconds: float) -> None:
        assert seconds == 1, "a store that fails is not asked at once"
        over.set()
        await asyncio.Event().wait()

    runner._handover = SimpleNamespace(queued=queued)  # type: ignore[assignment]
    monkeypatch.setattr(
        runner_module, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": pause})
    )
    store.queue = [[attempted("a"), attempted("b")], [], [attempted("c")]]
    taking = asyncio.create_task(runner._take())
    await asyncio.wait_for(over.wait(), 30)
    taking.cancel()
    assert started == ["a", "b", "c"]
    assert store.told == [(limit, "me")] * 4
    assert asked == [2], "news are waited for where there was nothing"


async def test_with_every_place_taken_nothing_is_taken_until_one_is_free() -> None:
    store = Store()
    runner = runner_of(store, 1)
    runner._slots = {"a": None}  # type: ignore[dict-item]
    runner._freed.set()  # of an earlier episode
    taking = asyncio.create_task(runner._take())
    await asyncio.sleep(0.01)
    assert store.told == []
    runner._slots.clear()
    runner._freed.set()
    await asyncio.sleep(0.01)
    taking.cancel()
    assert store.told == [(1, "me")]


async def test_an_episode_has_its_mode_s_method_its_resources_and_its_reward_last() -> None:
    store, played = Store(), list[Any]()
    runner = runner_of(store)

    async def play(kind: str, task: Any, resources: Any, rollout: Any) -> float | None:
        played.append((kind, task, resources, rollout.rollout_id))
        agl.emit_annotation({"episode": rollout.rollout_id})
        return 0.5 if kind == "training" else None

    def method(kind: str) -> Any:
        return lambda task, resources, rollout: play(kind, task, resources, rollout)

    agent = SimpleNamespace(
        training_rollout_async=method("training"), validation_rollout_async=method("validation")
    )
    runner.agent = agent  # type: ignore[assignment]
    runner.init_worker(0, store)  # type: ignore[arg-type]
    try:
        assert get_active_tracer() is runner.tracer
        trained = await asyncio.create_task(runner._episode(attempted("t")))
        checked = await asyncio.create_task(runner._episode(attempted("v", mode="val")))
    finally:
        runner.teardown_worker(0)
    assert get_active_tracer() is None
    assert runner.name == worker_name(os.getpid())
    resources = {"policy": "r1"}
    assert played == [
        ("training", {"name": "t"}, resources, "t"),
        ("validation", {"name": "v"}, resources, "v"),
    ]
    assert store.told == [("r1",)], "asked for once"
    assert [span.attributes.get("episode") for span in trained] == ["t", None]
    assert agl.find_final_reward(trained) == 0.5
    assert [span.attributes["episode"] for span in checked] == ["v"]


async def test_resources_the_store_does_not_have_are_named() -> None:
    rollout = attempted("a")
    rollout.resources_id = "r9"
    with pytest.raises(RuntimeError, match=r"^the store has no resources r9$"):
        await runner_of(Store())._resources_of(rollout)


async def test_the_end_gives_back_and_closes_though_the_store_refuses_or_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed, given = list[str](), list[Any]()

    class Closes:
        def __init__(self, name: str) -> None:
            self.name = name

        async def close(self) -> None:
            closed.append(self.name)

    async def refuse(store: Any, worker: str) -> int:
        given.append((store, worker))
        if len(given) == 2:
            await asyncio.Event().wait()
        raise ConnectionError("gone")

    monkeypatch.setattr(runner_module, "give_up", refuse)
    monkeypatch.setattr(runner_module, "GIVE_UP_SECONDS", 0.01)
    store = Store()
    for places in (0, 1, 1):
        runner = runner_of(store)
        runner._handover, runner._sender = Closes("handover"), Closes("sender")  # type: ignore[assignment]
        task = asyncio.create_task(asyncio.sleep(30))
        runner._slots = (
            {"a": Slot(attempted("a"), 0.0, task), "b": Slot(attempted("b"), 0.0)} if places else {}
        )  # type: ignore[arg-type]
        await runner._close()
        await asyncio.sleep(0)
        assert task.cancelled() == bool(places)
        task.cancel()
    assert closed == ["handover", "sender"] * 3
    assert given == [(store, "me")] * 2


def test_a_blocking_call_has_a_thread_of_its_own_and_its_result_or_error() -> None:
    threads, release = Threads(), threading.Event()
    hung: list[Future[Any]] = [threads.submit(release.wait) for _ in range(40)]
    assert threads.submit(lambda number, base: int(number, base=base), "11", base=2).result(30) == 3
    assert isinstance(threads.submit(int, "x").exception(30), ValueError)
    threads.shutdown()
    assert not any(future.done() for future in hung), "nothing waits for them"
    assert all(thread.daemon for thread in threading.enumerate() if thread.name.endswith("(work)"))
    release.set()
    assert all(future.result(30) for future in hung)
