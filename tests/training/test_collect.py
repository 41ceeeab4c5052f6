"""A finished rollout becomes a record and a trajectory, however late its spans come.

Keeps of docs/architecture.md, "How a step runs": what is trained is what the latest attempt generated, with the reward
that attempt earned; whatever cannot be matched call for call is left out under a cause, never a number.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import agentlightning as agl
import pytest
from agentlightning.emitter import emit_annotation, emit_reward
from agentlightning.types import Span

from tests.training.conftest import enqueue
from training import collect
from training.collect import Collector
from training.live_store import RunStore
from training.records import RolloutRecord
from training.trajectories import Limits
from training.watch import REWARD_MISSING, SPANS_MISSING

NOTE = {"terms": {"judge": 1.0}, "total": 1.0, "unscored": None, "stop_reason": "answered", "calls": 1, "counters": {}}


@pytest.fixture
async def store() -> RunStore:
    """A store with one rollout in its queue."""
    store = RunStore()
    await store.add_resources({})
    await enqueue(store, [{"name": "a"}])
    return store


async def attempt(store: RunStore) -> dict[str, str]:
    """Take the rollout as a runner does; what its attempt is called."""
    rollout = await store.dequeue_rollout()
    assert rollout is not None
    return {"rollout_id": rollout.rollout_id, "attempt_id": rollout.attempt.attempt_id}


async def report(store: RunStore, ids: dict[str, str], *notes: dict[str, Any], reward: float | None = 1.0) -> None:
    """What an attempt's runner writes at its end: annotations, then the reward."""
    spans = [emit_annotation({"episode": json.dumps(NOTE | note)}, propagate=False) for note in notes]
    if reward is not None:
        spans.append(emit_reward(reward, propagate=False))
    for number, core in enumerate(spans, start=10):
        await store.add_span(Span.from_core_fields(core, sequence_id=number, **ids))


@pytest.fixture
async def played(store: RunStore) -> Any:
    """The rollout has ended, its annotation and reward written, its call not yet."""
    ids = await attempt(store)
    await report(store, ids, {})
    await store.update_attempt(**ids, status="succeeded")
    return store, ids


def call_span(ids: dict[str, str], *generated: int, number: int = 1) -> Span:
    attributes = {
        "llm.hosted_vllm.prompt_token_ids": "[1, 2]",
        "llm.hosted_vllm.response_token_ids": json.dumps([generated]),
    }
    return Span.from_attributes(name="raw_gen_ai_request", attributes=attributes, sequence_id=number, **ids)


async def collected(store: RunStore, ids: dict[str, str], response: int = 100) -> tuple[RolloutRecord, Any]:
    collector = Collector(store, agl.LlmProxyTraceToTriplet(), Limits(100, response), True)
    rollout = await store.get_rollout_by_id(ids["rollout_id"])
    assert rollout is not None
    return await collector.collect(rollout, RolloutRecord(ids["rollout_id"], "g", 0, "train", 1, "queuing"))


async def test_late_spans_are_waited_for_and_not_longer(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store, ids = played
    monkeypatch.setattr(collect, "LATE_SPANS_SECONDS", 3600)
    asyncio.get_running_loop().call_later(0.1, lambda: asyncio.create_task(store.add_span(call_span(ids, 3))))
    record, trajectory = await asyncio.wait_for(collected(store, ids), 60)
    assert (record.cause, record.reward, record.triplets, record.generated_tokens) == (None, 1.0, 1, 1)
    assert trajectory.sequences[0].response_ids == [3]


async def test_spans_that_never_come_leave_the_rollout_out(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store, ids = played
    monkeypatch.setattr(collect, "LATE_SPANS_SECONDS", 0.2)
    record, trajectory = await collected(store, ids)
    assert record.cause == SPANS_MISSING
    assert trajectory.sequences == []


async def test_of_a_rollout_played_again_the_last_attempt_alone_is_trained_and_paid(store: RunStore) -> None:
    """Else the tokens of a lost attempt would be trained on the reward of another."""
    lost = await attempt(store)
    await report(store, lost, {"terms": {"judge": 0.0}, "stop_reason": "max_turns"}, reward=0.0)
    await store.add_span(call_span(lost, 7))
    await store.update_attempt(**lost, status="unresponsive")
    ids = await attempt(store)
    await store.add_span(call_span(ids, 3))
    await report(store, ids, {})
    await store.add_span(call_span(lost, 8, number=99))  # it goes on, and nobody knows
    await store.update_attempt(**ids, status="succeeded")
    record, trajectory = await collected(store, ids)
    assert lost["rollout_id"] == ids["rollout_id"]
    assert (record.cause, record.reward, record.stop_reason, record.triplets) == (None, 1.0, "answered", 1)
    assert [sequence.response_ids for sequence in trajectory.sequences] == [[3]]


async def test_more_calls_in_the_trace_than_the_episode_made_are_not_trained(played: Any) -> None:
    """A call the agent knows nothing of, such as one that was sent twice, would be paid like those it made."""
    store, ids = played
    for number in (1, 2):
        await store.add_span(call_span(ids, 3, number=number))
    record, trajectory = await collected(store, ids)
    assert (record.cause, record.triplets, record.calls) == (SPANS_MISSING, 2, 1)
    assert trajectory.sequences == []


async def test_the_last_annotation_counts(store: RunStore) -> None:
    """It is what the agent says at the end: an earlier one has other terms and calls."""
    ids = await attempt(store)
    await store.add_span(call_span(ids, 3))
    early = {"terms": {"judge": 0.2}, "calls": 9, "stop_reason": "max_turns"}
    await report(store, ids, early, {})
    await store.update_attempt(**ids, status="succeeded")
    record, _ = await collected(store, ids)
    assert (record.cause, record.terms, record.stop_reason) == (None, {"judge": 1.0}, "answered")


@pytest.mark.parametrize(("limit", "cause", "trained"), [(3, None, [[3, 3, 3]]), (2, "too_long", [])])
async def test_an_episode_over_the_limit_is_left_out_under_its_cause(
    played: Any, limit: int, cause: str | None, trained: list[list[int]]
) -> None:
    """Without the cause it would count as scored, enter its group's mean, and leave nothing to train on."""
    store, ids = played
    await store.add_span(call_span(ids, 3, 3, 3))
    record, trajectory = await collected(store, ids, limit)
    assert (record.cause, record.reward) == (cause, 1.0)
    assert [sequence.response_ids for sequence in trajectory.sequences] == trained
    assert record.sequences == len(trained)


@pytest.mark.parametrize(
    ("note", "reward", "cause"),
    [
        ({"unscored": "judge_failed", "total": None}, 1.0, "judge_failed"),
        ({"unscored": "judge_failed", "total": None}, None, "judge_failed"),
        ({}, None, REWARD_MISSING),
        ({}, 0.0, None),
    ],
)
async def test_an_episode_without_a_score_is_left_out_and_0_is_a_score(
    store: RunStore, note: dict[str, Any], reward: float | None, cause: str | None
) -> None:
    ids = await attempt(store)
    await store.add_span(call_span(ids, 3))
    await report(store, ids, note, reward=reward)
    await store.update_attempt(**ids, status="succeeded")
    record, trajectory = await collected(store, ids)
    assert (record.cause, len(trajectory.sequences)) == (cause, int(cause is None))


async def test_an_episode_that_never_called_the_policy_is_not_trained(store: RunStore) -> None:
    ids = await attempt(store)
    await report(store, ids, {"calls": 0})
    await store.update_attempt(**ids, status="succeeded")
    assert (await collected(store, ids))[0].cause == "no_calls"


async def test_a_rollout_that_failed_is_left_out_whatever_it_wrote(store: RunStore) -> None:
    ids = await attempt(store)
    await store.add_span(call_span(ids, 3))
    await report(store, ids, {})
    await store.update_attempt(**ids, status="failed")
    record, trajectory = await collected(store, ids)
    assert (record.cause, record.reward, trajectory.sequences) == ("rollout_failed", None, [])
