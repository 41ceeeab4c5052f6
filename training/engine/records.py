"""The record of one rollout, and a step's metrics made of its records, in plain Python.

A record with a `cause` is left out of the update and counted under it: it is not zero.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import fsum
from statistics import fmean
from typing import Any

from episodes.record import EpisodeRecord

EPISODE_ATTRIBUTE = "episode"
VALIDATION = "validation/reward"  # the metric of a step's validation


@dataclass(kw_only=True)
class RolloutRecord(EpisodeRecord):
    """The episode of one rollout and what training knows of it, as written to `episodes.jsonl`.
    Token counts cover all its policy calls.

    cause: why it entered no update. question, reference, answer: may be cut. agent: whose task it
    was, if several are trained together. task_type: groups the validation. index: the task's line
    in its file. transcript, own, tokens: of a sample only (`training.engine.kept_sample`).
    """

    step: int = 0
    agent: str | None = None
    counters: dict[str, float] = field(default_factory=dict)
    canaries: dict[str, int] = field(default_factory=dict)
    rollout_id: str = ""
    group: str = ""
    mode: str = ""
    status: str = "queuing"
    cause: str | None = None
    triplets: int = 0
    sequences: int = 0
    generated_tokens: int = 0
    breaks: dict[str, int] = field(default_factory=dict)
    index: int = -1
    tokens: list[Any] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The prefix of its sequences' keys in verl's replay buffer."""
        return f"{self.group}_{self.sample}"

    def to_json(self) -> str:
        return json.dumps(self.line(), ensure_ascii=False)


def causes(records: Iterable[RolloutRecord]) -> Counter[str]:
    return Counter(record.cause for record in records if record.cause)


def leave_out_lone(records: list[RolloutRecord]) -> None:
    """Give a group's only scored rollout a cause: verl would train on its raw reward."""
    scored = [record for record in records if record.cause is None]
    counts = Counter(record.group for record in scored)
    for record in scored:
        if counts[record.group] == 1:
            record.cause = "alone_in_group"


def step_metrics(
    records: list[RolloutRecord], prefix: str, compared: bool = True
) -> dict[str, float]:
    """Return metrics of a step's rollouts. `compared`: equal rewards of a group teach nothing."""
    scored = [record for record in records if record.cause is None]
    metrics: dict[str, float] = {
        f"{prefix}/rollouts": len(records),
        f"{prefix}/unscored": len(records) - len(scored),
    }
    if compared:
        groups = rewards_by_group(records).values()
        equal = [one for one in groups if len(one) > 1 and len(set(one)) == 1]
        metrics[f"{prefix}/equal_reward_groups"] = len(equal)
    if scored:
        total = fsum(record.reward or 0.0 for record in scored)
        sequences = sum(record.sequences for record in scored)
        metrics[f"{prefix}/reward/mean"] = total / len(scored)
        metrics[f"{prefix}/sequences_per_rollout"] = sequences / len(scored)
    parts: dict[str, Mapping[str, float]] = {
        "terms": means(record.terms for record in scored),
        "measures": means(record.numbers for record in records),
        "counters": sums(record.counters for record in records),
        "canaries": sum_canaries(records),
        "causes": causes(records),
        "stop_reasons": Counter(record.stop_reason for record in records if record.stop_reason),
    }
    for part, found in parts.items():
        for name, value in found.items():
            metrics[f"{prefix}/{part}/{name}"] = value
    for agent, own in by_agent(records).items():
        alone = [replace(record, agent=None) for record in own]  # so that this is not done again
        metrics |= step_metrics(alone, f"{prefix}/{agent}", compared)
    return metrics


def by_agent(records: Iterable[RolloutRecord]) -> dict[str, list[RolloutRecord]]:
    """Return the records of each agent if several are trained together, else {}."""
    found: dict[str, list[RolloutRecord]] = {}
    for record in records:
        if record.agent:
            found.setdefault(record.agent, []).append(record)
    return found


def validation_reward(data: Mapping[str, float]) -> float | None:
    """Return the mean over task types of a step's validation, or None.

    Runs of earlier versions have verl's means alone, one a task type.
    """
    if VALIDATION in data:
        return data[VALIDATION]
    by_type = [value for name, value in data.items() if name.startswith("val-core/")]
    return fmean(by_type) if by_type else None


def validation_of(records: Iterable[RolloutRecord]) -> dict[str, Any]:
    """Return this mean of a validation's scored rollouts, and the means of the terms likewise."""
    by_type: dict[str, list[RolloutRecord]] = {}
    for record in records:
        if record.cause is None:
            by_type.setdefault(record.task_type, []).append(record)
    rewards = []
    terms = []
    for found in by_type.values():
        rewards.append(fmean(record.reward or 0.0 for record in found))
        terms.append(means(record.terms for record in found))
    return {"mean": fmean(rewards) if rewards else None, "terms": means(terms)}


def means(found: Iterable[Mapping[str, float]]) -> dict[str, float]:
    return {name: fsum(values) / len(values) for name, values in _by_name(found).items()}


def sums(found: Iterable[Mapping[str, float]]) -> dict[str, float]:
    # Sorted: a sum of floats must not depend on which episode ended first
    return {name: sum(sorted(values)) for name, values in _by_name(found).items()}


def _by_name(found: Iterable[Mapping[str, float]]) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for numbers in found:
        for name, value in numbers.items():
            values.setdefault(name, []).append(value)
    return values


def sum_canaries(records: Iterable[RolloutRecord]) -> dict[str, float]:
    """Return how many known-bad answers were judged, and how many of them accepted."""
    return {"judged": 0, "accepted": 0} | sums(record.canaries for record in records)


def rewards_by_group(records: list[RolloutRecord]) -> dict[str, list[float]]:
    """Return the rewards of every prompt group's scored rollouts."""
    groups: dict[str, list[float]] = {}
    for record in records:
        if record.cause is None:
            groups.setdefault(record.group, []).append(record.reward or 0.0)
    return groups
