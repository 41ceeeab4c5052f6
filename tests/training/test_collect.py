"""A finished rollout becomes a record and a trajectory, however late its spans come."""

import asyncio
import json
from typing import Any

import pytest
from agentlightning.emitter import emit_annotation, emit_reward
from agentlightning.types import Span

from tests.corpora import cases_of
from tests.training.conftest import enqueue
from training.engine import collect
from training.engine.collect import Collector
from training.engine.records import RolloutRecord
from training.engine.trajectories import Limits
from training.engine.watchdog import REWARD_MISSING, SPANS_MISSING
from training.proxy.recorder import LOG_PROBS_ATTRIBUTE, RESPONSE_ATTRIBUTE
from training.store.live_store import RunStore

NAMES = {"reply": RESPONSE_ATTRIBUTE, "log_probs": LOG_PROBS_ATTRIBUTE}
NAMES["prompt"] = "llm.hosted_vllm.prompt_token_ids"
NOTE = {"terms": {"judge": 1.0}, "reward": 1.0, "unscored": None, "counters": {}}
NOTE |= {"stop_reason": "answered", "turns": 1}


@pytest.fixture
async def store():
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


async def report(store: RunStore, ids: Any, *notes: Any, reward: float | None = 1.0) -> None:
    """What an attempt's runner writes at its end: annotations, then the reward."""
    told = [{"episode": json.dumps(NOTE | note)} for note in notes]
    spans = [emit_annotation(note, propagate=False) for note in told]
    if reward is not None:
        spans.append(emit_reward(reward, propagate=False))
    for number, core in enumerate(spans, start=10):
        await store.add_span(Span.from_core_fields(core, sequence_id=number, **ids))


@pytest.fixture
async def played(store):
    """The rollout has ended, its annotation and reward written, its call not yet."""
    ids = await attempt(store)
    await report(store, ids, {})
    await store.update_attempt(**ids, status="succeeded")
    return store, ids


def call_span(ids: dict[str, str], *generated: int, number: int = 1, **attributes: Any) -> Span:
    attributes = {
        "llm.hosted_vllm.prompt_token_ids": "[1, 2]",
        "llm.hosted_vllm.response_token_ids": json.dumps([generated]),
        **{NAMES[name]: value for name, value in attributes.items()},
    }
    told = {"name": "raw_gen_ai_request", "attributes": attributes}
    return Span.from_attributes(**told, sequence_id=number, **ids)


async def collected(
    store: RunStore, ids: dict[str, str], response: int = 100, merge: bool = True
) -> tuple[RolloutRecord, Any]:
    collector = Collector(store, Limits(100, response), merge)
    rollout = await store.get_rollout_by_id(ids["rollout_id"])
    assert rollout is not None
    record = RolloutRecord(rollout_id=rollout.rollout_id, group="g", mode="train", step=1)
    return await collector.collect(rollout, record)


async def test_late_spans_are_waited_for_and_not_longer(played, monkeypatch):
    store, ids = played
    monkeypatch.setattr(collect, "LATE_SPANS_SECONDS", 3600)
    collecting = asyncio.create_task(collected(store, ids))
    await asyncio.sleep(0.1)
    await store.add_span(call_span(ids, 3))
    record, trajectory = await asyncio.wait_for(collecting, 60)
    assert record.cause is None
    assert record.reward == 1.0
    assert record.triplets == 1
    assert record.generated_tokens == 1
    assert trajectory.sequences[0].response_ids == [3]


async def test_spans_that_never_come_leave_the_rollout_out(played, monkeypatch):
    store, ids = played
    monkeypatch.setattr(collect, "LATE_SPANS_SECONDS", 0.2)
    record, trajectory = await collected(store, ids)
    assert record.cause == SPANS_MISSING
    assert trajectory.sequences == []


async def test_of_a_rollout_played_again_the_last_attempt_alone_is_trained_and_paid(store):
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
    assert record.cause is None
    assert record.reward == 1.0
    assert record.stop_reason == "answered"
    assert record.triplets == 1
    assert [sequence.response_ids for sequence in trajectory.sequences] == [[3]]


async def test_an_episode_without_an_annotation_is_left_out_though_a_reward_is_there(
    store, monkeypatch
):
    """How many calls it had is not known, so neither is whether all of its tokens are there."""
    monkeypatch.setattr(collect, "LATE_SPANS_SECONDS", 0.0)
    ids = await attempt(store)
    await store.add_span(call_span(ids, 3))
    await report(store, ids)
    await store.update_attempt(**ids, status="succeeded")
    record, trajectory = await collected(store, ids)
    assert (record.cause, record.triplets, trajectory.sequences) == (REWARD_MISSING, 1, [])
    assert (record.question, record.answer) == ("", None)


@pytest.mark.parametrize(("merge", "sequences"), [(True, 1), (False, 2)])
async def test_every_call_keeps_its_own_log_probs(store, merge, sequences):
    """Those of another call would correct for a policy that did not sample these tokens."""
    ids = await attempt(store)
    second = {"prompt": "[1, 2, 3, 9]", "reply": "b", "log_probs": "[-0.5, -0.25]"}
    await store.add_span(call_span(ids, 4, 5, number=2, **second))
    await store.add_span(call_span(ids, 3, number=1, reply="a", log_probs="[-1.0]"))
    extra = {"counters": {"sql_calls": 2}, "measures": {"facts": 0.5}}
    extra["canaries"] = {"judged": 1, "accepted": 0}
    extra |= {"question": "怎么保存？", "answer": "密封", "detail": "as the runner says"}
    await report(store, ids, {"turns": 2, **extra})
    await store.update_attempt(**ids, status="succeeded")
    record, trajectory = await collected(store, ids, merge=merge)
    assert (record.cause, record.generated_tokens, record.sequences) == (None, 3, sequences)
    assert {name: getattr(record, name) for name in extra} == extra
    found = []
    for one in trajectory.sequences:
        found.append((one.prompt_ids, one.response_ids, one.mask, one.log_probs))
    whole = [([1, 2], [3, 9, 4, 5], [1, 0, 1, 1], [-1.0, 0.0, -0.5, -0.25])]
    apart = [([1, 2], [3], [1], [-1.0]), ([1, 2, 3, 9], [4, 5], [1, 1], [-0.5, -0.25])]
    assert found == (whole if merge else apart)
    assert record.breaks == ({} if merge else {"not_merged": 1})


@pytest.mark.parametrize(
    ("limit", "cause", "trained"), [(3, None, [[3, 3, 3]]), (2, "too_long", [])]
)
async def test_an_episode_over_the_limit_is_left_out_under_its_cause(played, limit, cause, trained):
    """Without the cause it would count as scored and leave nothing to train on."""
    store, ids = played
    await store.add_span(call_span(ids, 3, 3, 3))
    record, trajectory = await collected(store, ids, limit)
    assert (record.cause, record.reward) == (cause, 1.0)
    assert [sequence.response_ids for sequence in trajectory.sequences] == trained
    assert record.sequences == len(trained)


@pytest.mark.parametrize(
    ("note", "reward", "cause"),
    [*cases_of(__file__, "scores_that_count"), ({}, None, REWARD_MISSING)],
)
async def test_an_episode_without_a_score_is_left_out_and_0_is_a_score(store, note, reward, cause):
    ids = await attempt(store)
    await store.add_span(call_span(ids, 3))
    await report(store, ids, note, reward=reward)
    await store.update_attempt(**ids, status="succeeded")
    record, trajectory = await collected(store, ids)
    assert (record.cause, len(trajectory.sequences)) == (cause, int(cause is None))


async def test_an_episode_that_never_called_the_policy_is_not_trained(store):
    ids = await attempt(store)
    await report(store, ids, {"turns": 0})
    await store.update_attempt(**ids, status="succeeded")
    assert (await collected(store, ids))[0].cause == "no_calls"


@pytest.mark.parametrize(("how", "times"), [("failed", 1), ("timeout", 3), ("unresponsive", 3)])
async def test_a_rollout_without_success_is_left_out_by_its_name(store, how, times):
    """What the runners lost three times is not called the agent's error."""
    for _ in range(times):
        ids = await attempt(store)
        await store.add_span(call_span(ids, 3))
        await report(store, ids, {})
        await store.update_attempt(**ids, status=how)
    record, trajectory = await collected(store, ids)
    assert (record.cause, record.status) == (f"rollout_{how}", how)
    assert (record.reward, trajectory.sequences) == (None, [])


async def test_more_calls_in_the_trace_than_the_episode_made_are_not_trained(played):
    """A call that was sent twice would be paid like those the agent made."""
    store, ids = played
    for number in (1, 2):
        await store.add_span(call_span(ids, 3, number=number))
    record, trajectory = await collected(store, ids)
    assert (record.cause, record.triplets, record.turns) == (SPANS_MISSING, 2, 1)
    assert trajectory.sequences == []
