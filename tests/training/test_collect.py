"""A finished rollout becomes a record and a trajectory, however late its spans come."""

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
from training.watch import SPANS_MISSING

NOTE = {"terms": {"judge": 1.0}, "total": 1.0, "unscored": None, "stop_reason": "answered", "calls": 1, "counters": {}}


@pytest.fixture
async def played() -> Any:
    """A store with one rollout that has ended, its annotation and reward written, its call not yet."""
    store = RunStore()
    await store.add_resources({})
    await enqueue(store, [{"name": "a"}])
    rollout = await store.dequeue_rollout()
    assert rollout is not None
    ids = {"rollout_id": rollout.rollout_id, "attempt_id": rollout.attempt.attempt_id}
    note = emit_annotation({"episode": json.dumps(NOTE)}, propagate=False)
    for number, core in enumerate([note, emit_reward(1.0, propagate=False)], start=2):
        await store.add_span(Span.from_core_fields(core, sequence_id=number, **ids))
    await store.update_attempt(rollout.rollout_id, rollout.attempt.attempt_id, status="succeeded")
    return store, ids


def call_span(ids: dict[str, str]) -> Span:
    attributes = {"llm.hosted_vllm.prompt_token_ids": "[1, 2]", "llm.hosted_vllm.response_token_ids": "[[3]]"}
    return Span.from_attributes(name="raw_gen_ai_request", attributes=attributes, sequence_id=1, **ids)


async def collected(store: RunStore, ids: dict[str, str]) -> tuple[RolloutRecord, Any]:
    collector = Collector(store, agl.LlmProxyTraceToTriplet(), Limits(100, 100), True)
    rollout = await store.get_rollout_by_id(ids["rollout_id"])
    assert rollout is not None
    return await collector.collect(rollout, RolloutRecord(ids["rollout_id"], "g", 0, "train", 1, "queuing"))


async def test_late_spans_are_waited_for_and_not_longer(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store, ids = played
    monkeypatch.setattr(collect, "LATE_SPANS_SECONDS", 3600)
    asyncio.get_running_loop().call_later(0.1, lambda: asyncio.create_task(store.add_span(call_span(ids))))
    record, trajectory = await asyncio.wait_for(collected(store, ids), 60)
    assert (record.cause, record.reward, record.triplets, record.generated_tokens) == (None, 1.0, 1, 1)
    assert trajectory.sequences[0].response_ids == [3]


async def test_spans_that_never_come_leave_the_rollout_out(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store, ids = played
    monkeypatch.setattr(collect, "LATE_SPANS_SECONDS", 0.2)
    record, trajectory = await collected(store, ids)
    assert record.cause == SPANS_MISSING
    assert trajectory.sequences == []
