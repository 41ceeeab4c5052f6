"""Many episodes in one process: apart, bounded, and given back when something goes wrong."""

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import Any

import agentlightning as agl
import aiohttp
import pytest
from agentlightning.types import AttemptedRollout

from tests.training.conftest import ToyAgent, enqueue, running, served
from training.runners import episode_runner
from training.runners.episode_runner import EpisodeRunner
from training.store import store_client
from training.store.live_store import RunStore
from training.store.store_client import StoreClient


async def ends(store: StoreClient, ids: list[str], seconds: float = 60) -> list[Any]:
    found: dict[str, Any] = {}
    last = 0
    async with asyncio.timeout(seconds):
        while not found.keys() >= {*ids}:
            last, ended = await store.wait_ended(last)
            found |= {one.rollout_id: one for one in ended}
    return [found[rollout_id] for rollout_id in ids]


async def emitted(store: agl.LightningStore, rollout_id: str) -> list[str]:
    spans = await store.query_spans(rollout_id, attempt_id="latest")
    return [str(span.attributes["episode"]) for span in spans if "episode" in span.attributes]


async def test_episodes_run_together_within_the_limit_and_keep_their_spans_apart(store):
    agent = ToyAgent()
    tasks = [{"name": f"n{i}", "sleep": 0.3, "reward": i / 10} for i in range(20)]
    ids = await enqueue(store, tasks)
    async with running(EpisodeRunner(10, 30), agent, store):
        rollouts = await ends(store, ids)
    assert {rollout.status for rollout in rollouts} == {"succeeded"}
    assert agent.most == 10
    for i, rollout_id in enumerate(ids):
        assert await emitted(store, rollout_id) == [f"n{i}"]
        spans = await store.query_spans(rollout_id, attempt_id="latest")
        assert agl.find_final_reward(list(spans)) == i / 10
        assert [span.sequence_id for span in spans] == [1, 2]


async def test_a_hanging_episode_is_ended_at_its_deadline_and_played_again(store):
    (hanging,) = await enqueue(store, [{"name": "hangs", "sleep": 3600, "first_only": True}])
    agent = ToyAgent()
    async with running(EpisodeRunner(2, 2), agent, store):
        (rollout,) = await ends(store, [hanging])
        assert agent.playing == 0, "it would go on calling the policy"
    assert rollout.status == "succeeded"
    attempts = await store.query_attempts(hanging)
    assert [attempt.status for attempt in attempts] == ["timeout", "succeeded"]


async def test_an_episode_that_refuses_to_be_cancelled_frees_its_place(store):
    agent = ToyAgent()
    stubborn = {"name": "stubborn", "stubborn": True, "first_only": True}
    ids = await enqueue(store, [stubborn, {"name": "next"}])
    async with running(EpisodeRunner(1, 2), agent, store):
        await ends(store, ids)
        assert agent.names == ["stubborn"]
        agent.released.set()


async def test_blocking_tools_that_hang_delay_nobody(store):
    """Forty of them: more threads than asyncio's own pool has. Nor does stopping wait for them."""
    agent = ToyAgent()
    await enqueue(store, [{"name": "blocks", "block": True} for _ in range(40)])
    others = await enqueue(store, [{"name": "quick"} for _ in range(8)])
    async with asyncio.timeout(120):
        async with running(EpisodeRunner(48, 3600), agent, store):
            await ends(store, others)
    agent.released.set()


async def test_an_agent_that_raises_fails_and_is_not_played_again(store):
    tasks = [{"name": "a", "raise": True}, {"name": "b"}, {"name": "c", "reward": "much"}]
    ids = await enqueue(store, tasks)
    async with running(EpisodeRunner(4, 30), ToyAgent(), store):
        rollouts = await ends(store, ids)
    assert [rollout.status for rollout in rollouts] == ["failed", "succeeded", "failed"]
    assert len(await store.query_attempts(ids[0])) == 1


async def test_a_late_result_of_a_lost_attempt_does_not_count(store, monkeypatch):
    """The first attempt is taken away while it plays, and reports after the second has ended."""
    agent, send = ToyAgent(), StoreClient.send_spans
    reported = asyncio.Event()

    async def note(client: StoreClient, spans: Any) -> None:
        await send(client, spans)
        if agent.released.is_set():
            reported.set()

    monkeypatch.setattr(StoreClient, "send_spans", note)
    ids = await enqueue(store, [{"name": "a", "block": True, "first_only": True}])
    async with running(EpisodeRunner(4, 90), agent, store):
        while not agent.playing:
            await asyncio.sleep(0.02)
        await store.update_attempt(ids[0], "latest", status="unresponsive")
        (rollout,) = await ends(store, ids)
        second = await store.query_spans(ids[0], attempt_id="latest")
        agent.released.set()
        await asyncio.wait_for(reported.wait(), 60)
    now = await store.get_rollout_by_id(ids[0])
    assert isinstance(now, AttemptedRollout)
    assert (rollout.status, now.status, now.attempt.sequence_id) == ("succeeded", "succeeded", 2)
    latest = await store.query_spans(ids[0], attempt_id="latest")
    assert [span.span_id for span in latest] == [span.span_id for span in second]
    assert {span.attempt_id for span in latest} == {now.attempt.attempt_id}


async def test_an_episode_whose_spans_are_lost_is_not_reported_as_played(store, monkeypatch):
    """Reported as ended, it would be an episode nobody knows the reward of."""
    send, refused = StoreClient.send_spans, list[Any]()

    async def refuse_once(client: StoreClient, spans: Any) -> None:
        if not refused:
            refused.append(spans)
            raise aiohttp.ClientError("away")
        await send(client, spans)

    monkeypatch.setattr(StoreClient, "send_spans", refuse_once)
    lost, next_one = await enqueue(store, [{"name": "lost"}, {"name": "the runner goes on"}])
    async with running(EpisodeRunner(1, 30), ToyAgent(), store):
        await ends(store, [next_one])
        assert (await store.get_rollout_by_id(lost)).status == "preparing"


@pytest.mark.parametrize("how", ["unresponsive", "cancelled", "another's", "released"])
async def test_an_attempt_that_the_store_has_given_up_is_dropped_and_not_kept_alive(
    how, store, monkeypatch
):
    """Kept alive beside the one that replaced it, it would be played to its end and paid for."""
    agent = ToyAgent()

    async def nothing(**_: Any) -> list[Any]:
        return []

    (rollout_id,) = await enqueue(store, [{"name": "a", "sleep": 3600}])
    async with running(EpisodeRunner(1, 90, heartbeat=0.2), agent, store):
        while not agent.playing:
            await asyncio.sleep(0.02)
        # What is queued again is taken by others
        monkeypatch.setattr(store, "dequeue_many_rollouts", nothing)
        if how == "released":
            monkeypatch.setattr(store, "query_rollouts", nothing)
        elif how == "cancelled":
            await store.update_rollout(rollout_id, status="cancelled")
        else:
            await store.update_attempt(rollout_id, "latest", status="unresponsive")
        if how == "another's":
            await store.dequeue_rollout(worker_id="another")
        before = (await store.query_attempts(rollout_id))[0].last_heartbeat_time
        while agent.playing:
            await asyncio.sleep(0.02)
        assert (await store.query_attempts(rollout_id))[0].last_heartbeat_time == before


async def test_a_runner_whose_clock_is_behind_sends_its_heartbeat_by_the_store_s(
    store, monkeypatch
):
    behind = SimpleNamespace(time=lambda: time.time() - 90, monotonic=time.monotonic)
    monkeypatch.setattr(episode_runner, "time", behind)
    (rollout_id,) = await enqueue(store, [{"name": "a", "sleep": 3600}])
    async with running(EpisodeRunner(1, 90, heartbeat=0.2), ToyAgent(), store):
        sent = None
        while sent is None:
            await asyncio.sleep(0.02)
            for attempt in await store.query_attempts(rollout_id):
                sent = attempt.last_heartbeat_time
        assert attempt.start_time <= sent <= time.time()


async def test_slow_spans_of_some_episodes_do_not_delay_the_heartbeats_of_others(monkeypatch):
    """Taken for dead, they would be played again. A client's connections are few."""
    monkeypatch.setattr(store_client, "STORE_CONNECTIONS", 1)
    asked, answered = asyncio.Event(), threading.Event()

    class Slow(RunStore):
        async def add_many_spans(self, spans: Any) -> Any:
            loop.call_soon_threadsafe(asked.set)
            await asyncio.to_thread(answered.wait)
            return await super().add_many_spans(spans)

    loop = asyncio.get_running_loop()
    async with served(Slow()) as store:
        _, long = await enqueue(store, [{"name": "quick"}, {"name": "long", "sleep": 3600}])
        other = StoreClient(store.server_address_root)
        try:
            async with running(EpisodeRunner(2, 90, heartbeat=0.1), ToyAgent(), store):
                await asyncio.wait_for(asked.wait(), 30)
                [before] = await other.query_attempts(long)
                async with asyncio.timeout(15):
                    now = before
                    while now.last_heartbeat_time == before.last_heartbeat_time:
                        await asyncio.sleep(0.05)
                        [now] = await other.query_attempts(long)
        finally:
            answered.set()
            await other.close()


async def test_a_runner_that_is_stopped_by_its_event_returns_and_gives_back():
    """Its requests carry the token of its store."""
    async with served(token="secret") as store:
        agent, stopped = ToyAgent(), threading.Event()
        done, long = await enqueue(store, [{"name": "done"}, {"name": "long", "sleep": 3600}])
        runner = EpisodeRunner(2, 90)
        runner.init(agent)
        runner.init_worker(0, store)
        playing = asyncio.create_task(runner.iter(event=stopped))  # type: ignore[arg-type]
        await ends(store, [done])
        stopped.set()
        await asyncio.wait_for(playing, 30)
        runner.teardown_worker(0)
        assert await emitted(store, done) == ["done"]
        assert (await store.get_rollout_by_id(long)).status == "requeuing"
