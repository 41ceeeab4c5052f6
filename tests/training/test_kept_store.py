"""A store on disk holds what it held when it is opened again, whatever happened."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import agentlightning as agl
import pytest
from agentlightning import ProxyLLM
from agentlightning.store.base import is_queuing
from agentlightning.types import EnqueueRolloutRequest, RolloutConfig, Span
from hypothesis import given
from hypothesis import settings as fuzzing
from hypothesis import strategies as st

from tests.training.conftest import HOST, enqueue, served
from training.setup.plan import ConfigError
from training.store.kept_store import FILE, PUT, KeptStore
from training.store.store_client import StoreClient

RULES = RolloutConfig(max_attempts=2, retry_condition=["timeout", "unresponsive"])
TOKEN = "kept-store-token"
WORDS = [
    "enqueue",
    "take",
    "span",
    "beat",
    "end",
    "end",
    "cancel",
    "requeue",
    "resource",
    "worker",
    "forget",
]
STEPS = st.tuples(st.sampled_from(WORDS), st.integers(0, 5))


async def play(store: KeptStore, steps: list[tuple[str, int]]) -> None:
    """What runners and a trainer may do, in any order; `number` says to which rollout."""
    for step, number in steps:
        held = list((await store.query_rollouts()).items)
        rollout: Any = held[number % len(held)] if held else None
        attempt = getattr(rollout, "attempt", None)
        open_ = rollout and not rollout.end_time
        match step:
            case "enqueue":
                tasks = [{"问": "\ud800", "n": [number, None, 0.1]}] * number
                await store.enqueue_many_rollouts(
                    [EnqueueRolloutRequest(input=task, config=RULES) for task in tasks]
                )
            case "take":
                await store.dequeue_many_rollouts(limit=number, worker_id=f"runner-{number}")
            case "resource":
                await store.add_resources(
                    {"main_llm": ProxyLLM(endpoint=f"http://h:{number}", model="m")}
                )
            case "worker":
                await store.update_worker(f"runner-{number}", {"episodes": number})
            case "cancel" if rollout:
                await store.update_rollout(rollout.rollout_id, status="cancelled")
            case "requeue" if open_:
                await store.update_rollout(rollout.rollout_id, status="requeuing")
            case "forget" if rollout and rollout.end_time:
                await store._forget(rollout.rollout_id)
            case "beat" if attempt:
                await store.update_attempt(
                    rollout.rollout_id, attempt.attempt_id, last_heartbeat_time=float(number)
                )
            case "span" if attempt:
                (sequence,) = await store.get_many_span_sequence_ids(
                    [(rollout.rollout_id, attempt.attempt_id)]
                )
                await store.add_many_spans(
                    [span_of(rollout, sequence)] * 2
                )  # the second is one too many
            case "end" if attempt and open_:
                status: Any = [
                    "succeeded",
                    "failed",
                    "timeout",
                    "unresponsive",
                    "succeeded",
                    "running",
                ][number]
                await store.update_attempt(rollout.rollout_id, attempt.attempt_id, status=status)


def span_of(rollout: Any, sequence: int) -> Span:
    owner = {"rollout_id": rollout.rollout_id, "attempt_id": rollout.attempt.attempt_id}
    return Span.from_attributes(
        attributes={"ids": "[1, 2]", "nan": float("inf")}, sequence_id=sequence, **owner
    )


async def state(store: KeptStore) -> dict[str, Any]:
    """All a store knows; models compare by their values, and lists by their order."""
    collections = store.collections
    known = {
        name: (await getattr(collections, name).query()).items
        for name in ("rollouts", "attempts", "spans")
    }
    rollouts = known["rollouts"]
    return {
        **known,
        "resources": (await collections.resources.query()).items,
        "workers": (await collections.workers.query()).items,
        "queue": [rollout.rollout_id for rollout in await queue_of(store)],
        "numbers": dict(collections.span_sequence_ids._values),
        "running": set(store._running_rollout_ids),
        "finished": {key for key, event in store._completion_events.items() if event.is_set()},
        "starts": store._start_time_by_rollout,
        "spans_of": {key for key, size in store._span_bytes_by_rollout.items() if size},
        "latest": await store.get_latest_resources(),
        "endings": {name for _, _, name in store.ended}
        & {rollout.rollout_id for rollout in rollouts},
    }


async def queue_of(store: KeptStore) -> list[Any]:
    """The rollouts that wait, those given back first; others in the queue are passed over when it
    is their turn.
    """
    ids = await store.collections.rollout_queue.peek(10**6)
    found = [store.collections.rollouts._items.get(rollout_id) for rollout_id in ids]
    waiting = [rollout for rollout in found if rollout is not None and is_queuing(rollout)]
    back = sorted(
        (one for one in waiting if one.status == "requeuing"), key=lambda one: str(one.rollout_id)
    )
    return [*back, *(one for one in waiting if one.status == "queuing")]


@fuzzing(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_opened_again_it_holds_what_it_held(steps):
    async def body(folder: Path) -> None:
        store = await KeptStore.open(folder)
        await play(store, steps)
        before, last = await state(store), store.last_ending
        store.database.close()
        again = await KeptStore.open(folder)
        assert await state(again) == before
        assert all(number > last for number, _, _ in again.ended), "who waits would miss an ending"
        await play(again, steps)  # and it goes on as any store
        before = await state(again)
        again.database.close()
        third = await KeptStore.open(folder)
        assert await state(third) == before
        third.database.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(body(Path(folder)))


async def test_what_was_taken_from_the_queue_and_given_to_nobody_is_queued_again(tmp_path):
    """A kill between the two writes of a dequeue."""
    store = await KeptStore.open(tmp_path)
    await play(store, [("enqueue", 3)])
    ids = await store.collections.rollout_queue.peek(3)
    async with store.collections.atomic(labels=["rollout_queue"]) as collections:
        await collections.rollout_queue.dequeue(2)
    store.database.close()
    again = await KeptStore.open(tmp_path)
    assert [rollout.rollout_id for rollout in await again.dequeue_many_rollouts(limit=9)] == ids
    again.database.close()


async def test_runners_have_time_to_be_heard_again(tmp_path, monkeypatch):
    """A store that was away for long must not take every episode from the runners that play on."""
    store = await KeptStore.open(tmp_path)
    rules = RolloutConfig(
        unresponsive_seconds=0.001, max_attempts=3, retry_condition=["unresponsive"]
    )
    await store.enqueue_rollout(input={}, config=rules)
    await store.dequeue_rollout("runner")
    store.database.close()
    passed, wall, steady = 0.0, time.time, time.monotonic
    clock = SimpleNamespace(
        time=lambda: wall() + passed, monotonic=lambda: steady() + passed, time_ns=time.time_ns
    )
    monkeypatch.setattr("training.store.kept_store.time", clock)
    monkeypatch.setattr(time, "time", clock.time)
    again = await KeptStore.open(tmp_path)
    found = []
    for seconds in (0.0, 12.0, 25.0, 35.0):  # agent-lightning would look every 10 s
        passed = seconds
        found += [rollout.status for rollout in await again.query_rollouts()]
    assert found == ["preparing"] * 3 + ["requeuing"]
    again.database.close()


async def test_a_full_disk_delays_and_loses_nothing(tmp_path):
    store = await KeptStore.open(tmp_path)
    await play(store, [("enqueue", 5)])
    database = store.database
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(sqlite3.Error, match="full"):
        await play(store, [("enqueue", 5), ("take", 5), ("span", 1)] * 1000)
    database.execute(f"PRAGMA max_page_count = {pages + 8}")  # room for a part of it
    with pytest.raises(sqlite3.Error, match="full"):  # all of a request, or nothing
        await store.enqueue_many_rollouts([EnqueueRolloutRequest(input="x" * 100)] * 500)
    written = database.execute("SELECT count(*) FROM items WHERE value LIKE '%xxx%'").fetchone()
    assert written == (0,)
    before = list(store.collections.rollouts._items.values())
    with pytest.raises(sqlite3.Error, match="full"):  # said again, until there is room
        await store.add_resources({})
    database.execute("PRAGMA max_page_count = 1000000")
    await store.add_resources({})
    store.database.close()
    again = await KeptStore.open(tmp_path)
    assert (await state(again))["rollouts"] == before
    again.database.close()


async def test_a_folder_that_cannot_be_used_is_one_clear_line(tmp_path):
    store = await KeptStore.open(tmp_path / "new" / "a")
    with pytest.raises(ConfigError, match=r"new/a.*another store"):
        await KeptStore.open(tmp_path / "new" / "a")
    store.database.execute(PUT, ("rollouts", '["ro"]', '{"of": "another version"}'))
    store.database.close()
    with pytest.raises(ConfigError, match="another version"):
        await KeptStore.open(tmp_path / "new" / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / FILE).write_bytes(b"no database, but long enough to be read as one" * 100)
    with pytest.raises(ConfigError, match=str(tmp_path / "b")):
        await KeptStore.open(tmp_path / "b")
    assert (tmp_path / "new" / "a" / FILE).stat().st_mode & 0o077 == 0


async def test_an_answer_that_ends_too_early_is_asked_for_again():
    """A store that is killed while it answers has sent its headers, and not all of what follows."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        asked.append(path)
        cut = len(asked) == 1
        body = b"[" if cut else b"{}" if path.endswith("/health") else b"null"
        length = 100 if cut else len(body)
        lines = ["HTTP/1.1 200 OK", "content-type: application/json", f"content-length: {length}"]
        writer.write("\r\n".join([*lines, "connection: close", "", ""]).encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, HOST, 0) as server:
        client = StoreClient(f"http://{HOST}:{server.sockets[0].getsockname()[1]}", "token")
        assert await client.get_rollout_by_id("x") is None
        await client.close()
    assert asked[0] == asked[-1]
    assert len(asked) > 1


async def test_a_step_that_a_store_took_before_it_froze_is_not_queued_twice(monkeypatch):
    """The client's own time is up, and no connection was lost."""
    send = agl.LightningStoreClient.enqueue_many_rollouts
    asked = 0

    async def send_and_freeze(self: Any, rollouts: Any) -> Any:
        nonlocal asked
        asked += 1
        taken = await send(self, rollouts)
        if asked == 1:
            raise TimeoutError
        return taken

    monkeypatch.setattr(agl.LightningStoreClient, "enqueue_many_rollouts", send_and_freeze)
    async with served(token=TOKEN) as store:
        ids = await enqueue(store, [{"name": "a"}, {"name": "b"}])
        assert [rollout.rollout_id for rollout in await store.query_rollouts()] == ids
