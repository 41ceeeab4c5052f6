"""The curves of training runs, as points by step: which there are stands in one table.

charts = charts_of(runs, tallies)    # [{"group": "Reward", "title": "reward", "series": [{"run": 0, "points": [...]}]}]

A point is [step, value] or [step, value, half the width of its 95 % interval]. A step without a number has no point.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

from evaluation.run_folder import Run, numbers

Points = list[list[float]]
Step = dict[str, float]
Moments = dict[int, tuple[int, float, float]]  # of validation rewards by step: count, sum, sum of squares

# group, title, metric of metrics.jsonl, and the metric it is divided by. A star is a name, which becomes the title.
CURVES = (
    ("Reward", "reward", "episodes/reward/mean", ""),
    ("Reward", "*", "episodes/terms/*", ""),
    ("Validation", "*", "val-core/*/reward/mean@1", ""),
    ("How it plays", "share with an answer", "episodes/counters/answered", "episodes/rollouts"),
    ("How it plays", "turns", "num_turns/mean", ""),
    ("How it plays", "tokens after the prompt", "response_length/mean", ""),
    ("How it plays", "tokens of the prompt", "prompt_length/mean", ""),
    ("How it plays", "share without a score", "episodes/unscored", "episodes/rollouts"),
    ("Measures", "*", "episodes/measures/*", ""),
    ("Learning", "entropy", "actor/entropy", ""),
    ("Learning", "vLLM against trainer, KL", "rollout_corr/k3_kl", ""),
    ("Learning", "groups without a difference", "episodes/equal_reward_groups", "books/groups"),
    ("Learning", "gradient norm", "actor/grad_norm", ""),
    ("Seconds of a step", "whole step", "timing_s/step", ""),
    ("Seconds of a step", "rollouts", "timing_s/gen", ""),
    ("Seconds of a step", "log-probabilities", "timing_s/old_log_prob", ""),
    ("Seconds of a step", "update", "timing_s/update_actor", ""),
    ("Seconds of a step", "weights to vLLM", "timing_s/update_weights", ""),
    ("Seconds of a step", "validation", "timing_s/testing", ""),
)
IDLE = ("Seconds of a step", "share of the step without rollouts")  # vLLM has nothing to do then
VALIDATION = ("Validation", "reward, with 95 % interval")


def charts_of(runs: Sequence[Run], validations: Sequence[Moments]) -> list[dict[str, Any]]:
    """Every chart that any run has points for, in the order of the table; `validations` are those of each run."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for number, (run, moments) in enumerate(zip(runs, validations, strict=True)):
        for name, points in _curves(run, moments):
            if points:
                found.setdefault(name, []).append({"run": number, "points": points})
    order = list(dict.fromkeys(group for group, *_ in CURVES))
    charts = [{"group": group, "title": title, "series": series} for (group, title), series in found.items()]
    return sorted(charts, key=lambda chart: order.index(chart["group"]))


def absent(runs: Sequence[Run]) -> list[str]:
    """Titles of the table's curves that no training run here has numbers for."""
    steps = [data for run in runs for _, data in run.steps]
    named = [(title, metric) for _, title, metric, _ in CURVES if "*" not in metric]
    return [title for title, metric in named if steps and not any(metric in data for data in steps)]


def _curves(run: Run, moments: Moments) -> Iterator[tuple[tuple[str, str], Points]]:
    steps = run.steps
    yield VALIDATION, _with_intervals(moments)
    metrics = list(dict.fromkeys(metric for _, data in steps for metric in data))
    for group, title, wanted, per in CURVES:
        pattern = re.compile(re.escape(wanted).replace(r"\*", "([^/]+)"))
        for match in filter(None, map(pattern.fullmatch, metrics)):
            yield (group, match[1] if title == "*" else title), _points(steps, match[0], per)
    yield IDLE, [[step, 1 - share] for step, share in _points(steps, "timing_s/gen", "timing_s/step")]


def _points(steps: Sequence[tuple[int, Step]], metric: str, per: str) -> Points:
    there = [(step, data) for step, data in steps if metric in data and (not per or data.get(per))]
    return [[step, data[metric] / (data[per] if per else 1)] for step, data in there]


def _with_intervals(moments: Moments) -> Points:
    """The mean of each step's validation rewards, 1.96 standard errors to each side; one reward alone has no error."""
    points = []
    for step, (count, total, squares) in sorted(moments.items()):
        mean = total / count
        spread = max(0.0, squares / count - mean * mean) * count / (count - 1) if count > 1 else None
        points.append([step, mean, *([1.96 * sqrt(spread / count)] if spread is not None else [])])
    return points


def note_validation(moments: Moments, record: dict[str, Any]) -> None:
    """Add a rollout of a validation to the moments of its step."""
    found = numbers(record)
    if record.get("mode") == "val" and "step" in found and "reward" in found and not record.get("cause"):
        key = int(found["step"])
        count, total, squares = moments.get(key, (0, 0.0, 0.0))
        moments[key] = (count + 1, total + found["reward"], squares + found["reward"] ** 2)
