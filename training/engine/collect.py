"""Turn a finished rollout's spans into its record and trajectory.

Spans of proxy and runner may arrive after the end. The annotation says how many calls there were.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from agentlightning import LightningStore, LlmProxyTraceToTriplet, find_final_reward
from agentlightning.types import AttemptedRollout, Rollout, Span

from episodes.record import EpisodeRecord
from training.engine.kept_sample import Finished
from training.engine.records import EPISODE_ATTRIBUTE, RolloutRecord
from training.engine.trajectories import Call, Limits, Trajectory, merge_calls
from training.engine.watchdog import REWARD_MISSING, SPANS_MISSING
from training.proxy.recorder import LOG_PROBS_ATTRIBUTE, RESPONSE_ATTRIBUTE

LATE_SPANS_SECONDS = 10.0
# Of a record's fields those that are not the annotation's
OF_THE_ENGINE = ("sample", "step", "task_type", "seconds")
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.2


class ProxyTraceToTriplet(LlmProxyTraceToTriplet):
    """agent-lightning's adapter with a JSON parser, which is 20 times as fast."""

    def _literal_eval_maybe(self, v: Any) -> Any:
        try:
            return json.loads(v) if isinstance(v, str) else v
        except ValueError:
            return super()._literal_eval_maybe(v)


ADAPTER = ProxyTraceToTriplet()


@dataclass
class Collector:
    """Reads rollouts from the store, many at a time."""

    store: LightningStore
    limits: Limits
    merge: bool

    async def collect(self, rollout: Rollout, record: RolloutRecord) -> Finished:
        """Fill the record from the latest attempt's spans. With a `cause` it has no trajectory."""
        record.status = str(rollout.status)
        if record.status == "failed" and isinstance(rollout, AttemptedRollout):
            # The store calls every end without success so, also a timeout
            record.status = rollout.attempt.status
        record.seconds = (rollout.end_time or time.time()) - rollout.start_time
        if record.status != "succeeded":
            record.cause = f"rollout_{record.status}"
            return record, Trajectory()
        spans, calls, episode = await self._complete_spans(rollout.rollout_id)
        record.triplets = len(calls)
        record.generated_tokens = sum(len(call.response_ids) for call in calls)
        _take_episode(record, episode, find_final_reward(spans))
        if record.cause is not None:
            return record, Trajectory()
        trajectory = merge_calls(calls, self.limits, self.merge)
        record.breaks = trajectory.breaks
        record.sequences = len(trajectory.sequences)
        if trajectory.too_long:
            record.cause = "too_long"
        return record, trajectory

    async def _complete_spans(
        self, rollout_id: str
    ) -> tuple[Sequence[Span], list[Call], EpisodeRecord | None]:
        deadline = time.monotonic() + LATE_SPANS_SECONDS
        pause = FIRST_PAUSE
        while True:
            spans = await self.store.query_spans(rollout_id, attempt_id="latest")
            log_probs = {}
            for span, text in _attributes(spans, LOG_PROBS_ATTRIBUTE):
                log_probs[span.attributes.get(RESPONSE_ATTRIBUTE)] = json.loads(text)
            calls = []
            for one in ADAPTER.adapt(spans):
                found = log_probs.get(one.metadata.get("response_id"))
                calls.append(Call([*one.prompt["token_ids"]], [*one.response["token_ids"]], found))
            notes = [text for _, text in _attributes(spans, EPISODE_ATTRIBUTE)]
            episode = EpisodeRecord.of_line(json.loads(notes[-1])) if notes else None
            if (episode and len(calls) >= episode.turns) or time.monotonic() > deadline:
                return spans, calls, episode
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def _attributes(spans: Sequence[Span], name: str) -> list[tuple[Span, str]]:
    return [(span, str(span.attributes[name])) for span in spans if name in (span.attributes or {})]


def _take_episode(
    record: RolloutRecord, episode: EpisodeRecord | None, reward: float | None
) -> None:
    if episode is None:
        record.cause = REWARD_MISSING
        return
    for one in fields(EpisodeRecord):
        if one.name not in OF_THE_ENGINE:
            setattr(record, one.name, getattr(episode, one.name))
    record.terms = {name: float(value) for name, value in episode.terms.items()}
    record.counters = episode.counters or {}
    record.canaries = episode.canaries or {}
    record.reward = reward
    if record.unscored:
        record.cause = record.unscored
    elif record.reward is None:
        record.cause = REWARD_MISSING
    elif record.triplets != record.turns:
        record.cause = SPANS_MISSING
    elif not record.turns:
        record.cause = "no_calls"
