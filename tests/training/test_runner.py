"""Many episodes in one process: apart from each other, bounded, and given back when something goes
wrong.

Keeps of docs/architecture.md, "Runners and the store": each way an attempt ends, and that one
result of a rollout counts, that of its latest attempt.
"""

from __future__ import annotations

import asyncio
from typing import Any

import agentlightning as agl
import aiohttp
import pytest
from agentlightning.types import AttemptedRollout

from tests.training.conftest import ToyAgent, enqueue, running, served
from training.proxy.recorder import SpanSender
from training.runners.episode_runner import EpisodeRunner
from training.store.handover import Endings
from training.store.live_store import RunStore


async def ends(store: agl.LightningStore, ids: list[str], seconds: float = 60) -> list[Any]:
    endings = Endings(store)
    try:
        return await asyncio.wait_for(asyncio.gather(*endings.expect(ids).values()), seconds)
    finally:
        await endings.close()


async def emitted(store: agl.LightningStore, rollout_id: str) -> list[str]:
    spans = await store.query_spans(rollout_id, attempt_id="latest")
    return [str(span.attributes["episode"]) for span in spans if "episode" in span.attributes]


async def test_episodes_run_together_within_the_limit_and_keep_their_spans_apart(
    store: Any,
) -> None:
    agent = ToyAgent()
    ids = await enqueue(
        store, [{"name": f"n{i}", "sleep": 0.3, "reward": i / 10} for i in range(20)]
    )
    async with running(EpisodeRunner(10, 30), agent, store):
        rollouts = await ends(store, ids)
    assert {rollout.status for rollout in rollouts} == {"succeeded"}
    assert agent.most == 10
    for i, rollout_id in enumerate(ids):
        assert await emitted(store, rollout_id) == [f"n{i}"]
        spans = await store.query_spans(rollout_id, attempt_id="latest")
        assert agl.find_final_reward(list(spans)) == i / 10
        assert [span.sequence_id for span in spans] == [1, 2]


async def test_a_hanging_episode_keeps_one_place(store: Any) -> None:
    await enqueue(store, [{"name": "hangs", "sleep": 3600}])
    others = await enqueue(store, [{"name": "quick"} for _ in range(8)])
    async with running(EpisodeRunner(2, 3600), ToyAgent(), store):
        await ends(store, others)


async def test_a_hanging_episode_is_ended_at_its_deadline_and_played_again(store: Any) -> None:
    (hanging,) = await enqueue(store, [{"name": "hangs", "sleep": 3600, "first_only": True}])
    async with running(EpisodeRunner(2, 2), ToyAgent(), store):
        (rollout,) = await ends(store, [hanging])
    assert rollout.status == "succeeded"
    attempts = await store.query_attempts(hanging)
    assert [attempt.status for attempt in attempts] == ["timeout", "succeeded"]


async def test_an_episode_that_always_hangs_fails_after_its_attempts(store: Any) -> None:
    ids = await enqueue(store, [{"name": "hangs", "sleep": 3600}], max_attempts=2)
    async with running(EpisodeRunner(2, 0.2), ToyAgent(), store):
        (rollout,) = await ends(store, ids)
    assert rollout.status == "failed"
    assert len(await store.query_attempts(ids[0])) == 2


async def test_an_episode_that_refuses_to_be_cancelled_frees_its_place(store: Any) -> None:
    agent = ToyAgent()
    ids = await enqueue(
        store, [{"name": "stubborn", "stubborn": True, "first_only": True}, {"name": "next"}]
    )
    async with running(EpisodeRunner(1, 2), agent, store):
        await ends(store, ids)
        assert agent.names == ["stubborn"]
        agent.released.set()


async def test_blocking_tools_that_hang_delay_nobody(store: Any) -> None:
    """Forty of them: more threads than asyncio's own pool has. Nor does stopping wait for them."""
    agent = ToyAgent()
    await enqueue(store, [{"name": "blocks", "block": True} for _ in range(40)])
    others = await enqueue(store, [{"name": "quick"} for _ in range(8)])
    async with asyncio.timeout(120):
        async with running(EpisodeRunner(48, 3600), agent, store):
            await ends(store, others)
    agent.released.set()


async def test_an_agent_that_raises_fails_and_is_not_played_again(store: Any) -> None:
    ids = await enqueue(
        store, [{"name": "a", "raise": True}, {"name": "b"}, {"name": "c", "reward": "much"}]
    )
    async with running(EpisodeRunner(4, 30), ToyAgent(), store):
        rollouts = await ends(store, ids)
    assert [rollout.status for rollout in rollouts] == ["failed", "succeeded", "failed"]
    assert len(await store.query_attempts(ids[0])) == 1


async def test_what_the_store_cancels_is_dropped_at_the_next_heartbeat(store: Any) -> None:
    agent = ToyAgent()
    (cancelled, other) = await enqueue(
        store, [{"name": "long", "sleep": 3600}, {"name": "other", "stubborn": True}]
    )
    async with running(EpisodeRunner(4, 90, heartbeat=0.2), agent, store):
        while agent.playing < 2:
            await asyncio.sleep(0.05)
        await store.update_rollout(cancelled, status="cancelled")
        while "long" in agent.names:
            await asyncio.sleep(0.05)
        agent.released.set()
        (rollout,) = await ends(store, [other])
    assert rollout.status == "succeeded"
    assert (await store.get_rollout_by_id(cancelled)).status == "cancelled"


async def test_heartbeats_keep_a_quiet_episode() -> None:
    live = RunStore()
    live._scan_debounce_seconds = 0.1
    async with served(live) as store:
        ids = await enqueue(store, [{"name": "quiet", "sleep": 4}], unresponsive_seconds=2)
        async with running(EpisodeRunner(4, 90, heartbeat=0.3), ToyAgent(), store):
            await ends(store, ids)
        assert len(await store.query_attempts(ids[0])) == 1


async def test_a_late_result_of_a_lost_attempt_does_not_count(store: Any) -> None:
    """The first attempt is taken away while it plays, and reports after the second has ended."""
    agent = ToyAgent()
    ids = await enqueue(store, [{"name": "first", "sleep": 1}])
    async with running(EpisodeRunner(4, 30), agent, store):
        while not agent.playing:
            await asyncio.sleep(0.02)
        await store.update_attempt(ids[0], "latest", status="unresponsive")
        (rollout,) = await ends(store, ids)
        second = await store.query_spans(ids[0], attempt_id="latest")
        while agent.playing:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
    attempts = {attempt.sequence_id: attempt for attempt in await store.query_attempts(ids[0])}
    now = await store.get_rollout_by_id(ids[0])
    assert isinstance(now, AttemptedRollout)
    assert (rollout.status, now.status, now.attempt.sequence_id) == ("succeeded", "succeeded", 2)
    assert attempts[1].status in ("succeeded", "running"), "it reported"
    latest = await store.query_spans(ids[0], attempt_id="latest")
    assert [span.span_id for span in latest] == [span.span_id for span in second]
    assert {span.attempt_id for span in latest} == {attempts[2].attempt_id}


async def test_stopping_gives_back_what_is_unfinished(store: Any) -> None:
    agent = ToyAgent()
    ids = await enqueue(store, [{"name": "long", "sleep": 60, "first_only": True}])
    async with running(EpisodeRunner(4, 90), agent, store):
        while not agent.playing:
            await asyncio.sleep(0.02)
    assert (await store.get_rollout_by_id(ids[0])).status == "requeuing"
    async with running(EpisodeRunner(4, 90), ToyAgent(), store):
        (rollout,) = await ends(store, ids)
    assert rollout.status == "succeeded"


async def test_the_spans_are_in_the_store_before_the_rollout_counts_as_ended(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other way round, a process that dies between the two leaves an ended rollout without its
    reward.
    """
    (rollout_id,) = await enqueue(store, [{"name": "a"}])
    send, seen = SpanSender.send, []

    async def look(sender: SpanSender, endpoint: str, spans: Any) -> None:
        seen.append((await store.get_rollout_by_id(rollout_id)).status)
        await send(sender, endpoint, spans)

    monkeypatch.setattr(SpanSender, "send", look)
    async with running(EpisodeRunner(1, 30), ToyAgent(), store):
        (rollout,) = await ends(store, [rollout_id])
    assert rollout.status == "succeeded"
    assert seen == ["preparing"]


async def test_an_episode_whose_spans_are_lost_is_not_reported_as_played(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays the store's to give to somebody else; as ended it would be an episode nobody knows
    the reward of.
    """
    tried = asyncio.Event()

    async def refuse(sender: SpanSender, endpoint: str, spans: Any) -> None:
        tried.set()
        raise aiohttp.ClientError("away")

    monkeypatch.setattr(SpanSender, "send", refuse)
    (rollout_id,) = await enqueue(store, [{"name": "a"}])
    async with running(EpisodeRunner(1, 30), ToyAgent(), store):
        await asyncio.wait_for(tried.wait(), 30)
        await asyncio.sleep(0.2)
        assert (await store.get_rollout_by_id(rollout_id)).status == "preparing"
