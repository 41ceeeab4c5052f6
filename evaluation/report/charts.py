"""The curves of training runs, as points [step, value] or [step, value, low, high] (95 % interval)."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from statistics import fmean
from typing import Any

from evaluation.metrics import FEW, interval_of_types
from evaluation.report.facts import Tally, Validation

Points = list[list[float]]
Step = dict[str, float]

SHARE, REWARD = "share of 1", "reward"  # units
EQUAL_GROUPS = "episodes/equal_reward_groups"
PLAY, LEARNING, TIME = "How it plays", "Learning", "Time of a step"
# group, title, unit, metric of metrics.jsonl, and the metric it is divided by. A star is a name,
# which becomes the title.
CURVES = (
    ("Reward", "reward", REWARD, "episodes/reward/mean", ""),
    ("Reward", "*", REWARD, "episodes/terms/*", ""),
    ("Validation", "*", REWARD, "val-core/*/reward/mean@1", ""),
    (PLAY, "episodes with an answer", SHARE, "episodes/counters/answered", "episodes/rollouts"),
    (PLAY, "unscored episodes", SHARE, "episodes/unscored", "episodes/rollouts"),
    (PLAY, "turns", "turns", "num_turns/mean", ""),
    (PLAY, "tokens after the prompt", "tokens", "response_length/mean", ""),
    (PLAY, "tokens of the prompt", "tokens", "prompt_length/mean", ""),
    ("Measures", "*", "mean of a step", "episodes/measures/*", ""),
    (LEARNING, "entropy", "nats", "actor/entropy", ""),
    (LEARNING, "vLLM against trainer, KL", "nats a token", "rollout_corr/k3_kl", ""),
    (LEARNING, "groups without a difference", SHARE, EQUAL_GROUPS, "books/groups"),
    (LEARNING, "gradient norm", "norm", "actor/grad_norm", ""),
    (TIME, "whole step", "seconds", "timing_s/step", ""),
    (TIME, "rollouts", "seconds", "timing_s/gen", ""),
    (TIME, "log-probabilities", "seconds", "timing_s/old_log_prob", ""),
    (TIME, "update", "seconds", "timing_s/update_actor", ""),
    (TIME, "weights to vLLM", "seconds", "timing_s/update_weights", ""),
    (TIME, "validation", "seconds", "timing_s/testing", ""),
)
VALIDATION = "Validation"
ALL = "validation reward, with 95 % interval"  # the mean over task types, as training has it


def charts_of(tallies: Sequence[Tally]) -> list[dict[str, Any]]:
    """Return every chart for which a run has points, in the order of the table."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for number, tally in enumerate(tallies):
        for group, title, unit, points in _curves(tally):
            if points:
                chart = {"group": group, "title": title, "unit": unit, "series": []}
                series = found.setdefault((group, title), chart)["series"]
                series.append({"run": number, "points": points})
    order = list(dict.fromkeys(group for group, *_ in CURVES))
    return sorted(found.values(), key=lambda chart: order.index(chart["group"]))


def _curves(tally: Tally) -> Iterator[tuple[str, str, str, Points]]:
    validation = tally.validation
    overall = [over_types(step, validation) for step in validated(validation)]
    yield VALIDATION, ALL, REWARD, overall
    for kind, rewards in sorted(validation.items()):
        if kind:
            points = [over_types(step, {kind: rewards}) for step in sorted(rewards)]
            yield VALIDATION, kind, REWARD, points
    steps = tally.run.steps
    metrics = dict.fromkeys(chain.from_iterable(data for _, data in steps))
    for group, title, unit, wanted, per in CURVES:
        pattern = re.compile(re.escape(wanted).replace(r"\*", "([^/]+)"))
        for metric in metrics:
            match = pattern.fullmatch(metric)
            if not match:
                continue
            name = match[1] if title == "*" else title
            if group != VALIDATION or name not in validation:
                yield group, name, unit, _points(steps, metric, per)


def _points(steps: Sequence[tuple[int, Step]], metric: str, per: str) -> Points:
    points = []
    for step, data in steps:
        whole = data.get(per) if per else 1.0
        if metric in data and whole:
            points.append([step, data[metric] / whole])
    return points


def validated(validation: Validation) -> list[int]:
    return sorted({*chain.from_iterable(validation.values())})


def over_types(step: int, validation: Validation) -> list[float]:
    """Return step and mean over task types, with an interval if FEW tasks, two of every type."""
    types = []
    for kinds in validation.values():
        if step in kinds:
            types.append([fmean(rewards) for rewards in kinds[step].values()])
    around = interval_of_types(types) if sum(map(len, types)) >= FEW else None
    return [step, fmean(map(fmean, types)), *(around or [])]
