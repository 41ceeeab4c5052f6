"""Pairs of final answers, as a judge reads them, and how well scores rank and calibrate them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from statistics import fmean
from typing import Any

import numpy
from scipy.optimize import minimize
from scipy.stats import bootstrap

from common.command import UsageError
from training.pairs.asked import counted, wins
from training.pairs.pair import LeftOut, Pair


@dataclass(frozen=True)
class AnswerPair:
    task: str
    question: str
    chosen: str
    rejected: str

    @property
    def answers(self) -> tuple[str, str]:
        """The better answer and the worse one."""
        return self.chosen, self.rejected


def answer_pairs(pairs: Sequence[Pair], left_out: LeftOut) -> list[AnswerPair]:
    """Return questions with two answers, each once. Raises UsageError: none is left."""
    kept: dict[AnswerPair, None] = {}
    for pair in pairs:
        chosen = pair.chosen.answer.strip()
        rejected = pair.rejected.answer.strip()
        found = AnswerPair(pair.task, pair.question, chosen, rejected)
        if not chosen or not rejected:
            left_out["an episode without an answer"] += 1
        elif chosen == rejected:
            left_out["both answers are equal"] += 1
        elif found in kept:
            left_out["answers there already"] += 1
        else:
            kept[found] = None
    if not kept:
        raise UsageError(f"no pair has two different answers: {counted(left_out)}")
    return [*kept]


def ranked(
    pairs: Sequence[AnswerPair], scores: Sequence[tuple[float, float]], seed: int
) -> dict[str, Any]:
    """Return how often the better answer scores higher, with a 95 % interval over tasks.

    A tie counts half. An accuracy is the mean over tasks of the mean over a task's pairs.
    """
    right: dict[str, list[float]] = defaultdict(list)
    longer: dict[str, list[float]] = defaultdict(list)
    for pair, (better, worse) in zip(pairs, scores, strict=True):
        right[pair.task].append(wins(better, worse))
        longer[pair.task].append(wins(len(pair.chosen), len(pair.rejected)))
    facts: dict[str, Any] = {"pairs": len(pairs), "tasks": len(right)}
    if len(right) < 2:
        return facts  # one task says nothing about others
    of_tasks = numpy.array([fmean(values) for values in right.values()])
    low = high = float(of_tasks[0])
    if of_tasks.min() != of_tasks.max():
        interval = bootstrap((of_tasks,), numpy.mean, method="percentile", rng=seed)
        low, high = interval.confidence_interval
    facts["accuracy"] = round(float(of_tasks.mean()), 4)
    facts["ci95"] = [round(float(low), 4), round(float(high), 4)]
    facts["longer_wins"] = round(fmean(map(fmean, longer.values())), 4)
    return facts


def platt(good: Sequence[float], bad: Sequence[float]) -> dict[str, Any] | None:
    """Return the logistic map to the probability of being better, or None if there cannot be one.

    Platt's fit (Advances in Large Margin Classifiers, 1999). Smoothed targets keep it finite.
    """
    scores = numpy.array([*good, *bad])
    middle = float(scores.mean())
    spread = float(scores.std()) or 1.0
    reached = [(len(good) + 1) / (len(good) + 2), 1 / (len(bad) + 2)]
    targets: Any = numpy.repeat(reached, [len(good), len(bad)])

    def loss(line: Any) -> float:
        logits = line[0] * (scores - middle) / spread + line[1]
        return float((numpy.logaddexp(0, logits) - targets * logits).mean())

    slope, offset = minimize(loss, [1.0, 0.0]).x
    if slope <= 0 or loss([slope, offset]) >= log(2):
        return None
    return {
        "kind": "logistic",
        "center": middle - spread * float(offset) / float(slope),
        "scale": spread / float(slope),
    }
