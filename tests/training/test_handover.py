"""News of the store come at once, and what is given up is played again."""

import asyncio
import socket
from collections import deque
from typing import Any

import aiohttp
import pytest
from agentlightning.types import Span
from fastapi import HTTPException
from omegaconf import OmegaConf

from tests.training.conftest import enqueue, served
from tests.training.plans import plan_of
from training.engine.algorithm import VerlAlgorithm
from training.start.run import deadline_of
from training.store import live_store, store_client
from training.store.live_store import RunStore
from training.store.store_client import give_up, rules_of, worker_name


@pytest.fixture(autouse=True)
def nobody_asks_twice(monkeypatch):
    """Who is not told of news waits longer than any test."""
    monkeypatch.setattr(store_client, "WAIT_SECONDS", 3600)
    monkeypatch.setattr(live_store, "LONGEST_WAIT", 3600)
    monkeypatch.setattr(live_store, "LOOK_SECONDS", 3600)


async def finish(store: Any, *statuses: str) -> None:
    for status in statuses:
        rollout = await store.dequeue_rollout()
        await store.update_attempt(rollout.rollout_id, rollout.attempt.attempt_id, status=status)


async def test_every_ending_is_handed_out_once_and_at_once(store):
    ids = await enqueue(store, [{"name": str(i)} for i in range(3)])
    asked = asyncio.create_task(store.wait_ended(0))
    await asyncio.sleep(0.2)
    await finish(store, "succeeded", "failed", "succeeded")
    last, found = await asyncio.wait_for(asked, 25)
    while len(found) < 3:
        last, more = await asyncio.wait_for(store.wait_ended(last), 25)
        found += more
    statuses = {rollout.rollout_id: rollout.status for rollout in found}
    assert [statuses[name] for name in ids] == ["succeeded", "failed", "succeeded"]


async def test_a_step_whose_answer_was_lost_is_not_queued_twice(monkeypatch):
    """The store took it, and the client heard nothing: its time was up, or the line was cut."""
    read = aiohttp.ClientResponse.json
    lost = []

    async def read_all_but_one(self: Any) -> Any:
        if self.url.path.endswith("/enqueue") and not lost:
            lost.append(self.url)
            raise TimeoutError
        return await read(self)

    monkeypatch.setattr(aiohttp.ClientResponse, "json", read_all_but_one)
    async with served(token="a-long-token-of-this-test") as store:
        ids = await enqueue(store, [{"name": "a"}, {"name": "b"}])
        assert [rollout.rollout_id for rollout in await store.query_rollouts()] == ids
    assert len(lost) == 1


async def test_an_error_of_the_store_delays_an_ending_and_loses_none(monkeypatch):
    """Taken for an answer, it would end the run."""
    monkeypatch.setattr(store_client, "UNREACHABLE_SECONDS", 0.0)

    class Failing(RunStore):
        asked = 0

        async def wait_ended(self, after: int, seconds: float) -> Any:
            self.asked += 1
            if self.asked == 1:
                raise HTTPException(503, "busy")
            return await super().wait_ended(after, seconds)

    async with served(Failing()) as store:
        last, found = 0, []
        await enqueue(store, [{"name": "a"}])
        await finish(store, "succeeded")
        while not found:
            last, found = await asyncio.wait_for(store.wait_ended(last), 25)
        assert [rollout.status for rollout in found] == ["succeeded"]


async def test_a_rollout_is_played_three_times_at_most(store, tmp_path):
    """By the rules of a run: a timeout and a silent runner are tried again, a failure is not."""
    rules = rules_of(60.0).model_dump()
    [often] = await enqueue(store, [{"name": "often"}], **rules)
    for number, status in enumerate(("timeout", "unresponsive", "timeout"), 1):
        rollout = await store.dequeue_rollout()
        assert (rollout.rollout_id, rollout.attempt.sequence_id) == (often, number)
        await store.update_attempt(often, rollout.attempt.attempt_id, status=status)
    assert await store.dequeue_rollout() is None
    _, [ended] = await store.wait_ended(0)
    assert (ended.status, ended.attempt.status) == ("failed", "timeout")
    [once] = await enqueue(store, [{"name": "once"}], **rules)
    await finish(store, "failed")
    assert await store.dequeue_rollout() is None
    assert (await store.get_rollout_by_id(once)).status == "failed"


def test_runners_wait_longer_than_any_episode_may_take_and_the_store_longer_than_they(tmp_path):
    assert 60.0 < deadline_of(60.0) < (rules_of(60.0).timeout_seconds or 0.0)


async def test_a_runner_gives_up_its_own_rollouts_alone(store):
    """Runner 12 is another one than runner 123; and those that have ended are played already."""
    ended, own, other = await enqueue(store, [{"name": name} for name in ("ended", "own", "other")])
    for worker in (worker_name(12), worker_name(12), worker_name(123)):
        taken = await store.dequeue_rollout(worker_id=worker)
        if taken.rollout_id == ended:
            await store.update_attempt(ended, taken.attempt.attempt_id, status="succeeded")
    await give_up(store, worker_name(12))
    assert (await store.get_rollout_by_id(ended)).status == "succeeded"
    assert (await store.get_rollout_by_id(own)).status == "requeuing"
    assert (await store.get_rollout_by_id(other)).status == "preparing"


async def test_a_port_that_another_run_took_meanwhile_is_named_with_its_setting(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        plan = plan_of(tmp_path, store_host="127.0.0.1", store_port=port)
        algorithm = VerlAlgorithm(plan, OmegaConf.create(), 0, 0.0)
        await algorithm.run()
    assert algorithm.outcome.message.startswith(f"cannot listen on 127.0.0.1:{port} (")
    assert "set AGL_SERVER_PORT to a free port" in algorithm.outcome.message


async def test_what_is_done_is_released_and_what_is_not_stays():
    store = RunStore()
    await store.add_resources({})
    ids = await enqueue(store, [{"name": str(i)} for i in range(51)])
    for _ in ids[:-1]:
        rollout = await store.dequeue_rollout()
        owner = {"rollout_id": rollout.rollout_id, "attempt_id": rollout.attempt.attempt_id}
        await store.add_span(Span.from_attributes(attributes={"a": 1}, sequence_id=1, **owner))
        await store.update_attempt(**owner, status="succeeded")
    assert (await store.statistics())["total_spans"] == 50
    store.ended = deque((number, at - 7200, name) for number, at, name in store.ended)
    await finish(store, "succeeded")
    known = await store.statistics()
    assert (known["total_rollouts"], known["total_attempts"], known["total_spans"]) == (1, 1, 0)
    assert not store.collections.span_sequence_ids._values
    assert await store.get_rollout_by_id(ids[0]) is None
    assert (await store.get_rollout_by_id(ids[-1])).status == "succeeded"
