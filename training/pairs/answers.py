"""Pairs of final answers, as a judge reads them, and how well scores rank and calibrate them.

pairs = answer_pairs(found, left_out)                # of training.pairs.pair.Pair
ranked(pairs, scores, seed=0)                        # {"accuracy": 0.9, "ci95": [0.85, 0.95], ...}
platt(good, bad)                                     # {"kind": "logistic", "center": ..., "scale": ...}
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from common.command import UsageError
from training.pairs.checked import counted
from training.pairs.pair import LeftOut, Pair

ALIKE = 0.3  # two answers are of like length where the longer one has at most this share more


@dataclass(frozen=True)
class AnswerPair:
    """A question with a better and a worse answer."""

    task: str
    question: str
    chosen: str
    rejected: str

    @property
    def answers(self) -> tuple[str, str]:
        """The better answer and the worse one."""
        return self.chosen, self.rejected

    @property
    def alike(self) -> bool:
        """Whether the answers are of like length."""
        shorter, longer = sorted(map(len, self.answers))
        return longer <= (1 + ALIKE) * shorter


def answer_pairs(pairs: Sequence[Pair], left_out: LeftOut) -> list[AnswerPair]:
    """Return the questions and answers of pairs, each once; `left_out` gets the others by reason.

    Raises UsageError: none is left.
    """
    kept: dict[AnswerPair, None] = {}
    for pair in pairs:
        chosen, rejected = pair.chosen.answer.strip(), pair.rejected.answer.strip()
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
    """Return how often the better answer has the higher score, with its 95 % interval over tasks,
    beside how often it is the longer one; the same of pairs of like length under `alike`.

    A tie counts half. An accuracy is the mean over tasks of the mean over a task's pairs.
    """
    right = [_higher(better, worse) for better, worse in scores]
    longer = [_higher(len(pair.chosen), len(pair.rejected)) for pair in pairs]
    alike = [number for number, pair in enumerate(pairs) if pair.alike]
    every = [*range(len(pairs))]
    facts = _measured(pairs, right, longer, every, seed)
    return facts | {"alike": _measured(pairs, right, longer, alike, seed)}


def _higher(one: float, other: float) -> float:
    return 1.0 if one > other else 0.5 if one == other else 0.0


def _measured(
    pairs: Sequence[AnswerPair],
    right: Sequence[float],
    longer: Sequence[float],
    among: Sequence[int],
    seed: int,
) -> dict[str, Any]:
    import numpy
    from scipy.stats import bootstrap

    tasks: dict[str, list[int]] = defaultdict(list)
    for number in among:
        tasks[pairs[number].task].append(number)

    def means(values: Sequence[float]) -> Any:
        return numpy.array([numpy.mean([values[one] for one in of]) for of in tasks.values()])

    facts: dict[str, Any] = {"pairs": len(among), "tasks": len(tasks)}
    if len(tasks) < 2:
        return facts  # one task says nothing about others
    of_tasks = means(right)
    if of_tasks.min() == of_tasks.max():  # nothing varies that could be drawn again
        low = high = float(of_tasks[0])
    else:
        interval = bootstrap((of_tasks,), numpy.mean, method="percentile", rng=seed)
        low, high = interval.confidence_interval
    facts["accuracy"] = round(float(of_tasks.mean()), 4)
    facts["ci95"] = [round(float(low), 4), round(float(high), 4)]
    facts["longer_wins"] = round(float(means(longer).mean()), 4)
    return facts


def platt(good: Sequence[float], bad: Sequence[float]) -> dict[str, Any] | None:
    """Return the logistic map from a raw score to the probability that an answer is a better one,
    in the form of REWARD_SCALE; None where higher scores do not go with better answers.

    It is Platt's fit (Advances in Large Margin Classifiers, 1999), whose smoothed targets keep it
    finite where the scores separate both kinds completely.
    """
    import numpy
    from scipy.optimize import minimize

    scores = numpy.array([*good, *bad])
    middle, spread = float(scores.mean()), float(scores.std()) or 1.0
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
