"""Rewards as named terms with their sum; not scored is not zero.

Reward(total=1.0, terms={"rule": 0.1, "judge": 0.9}, unscored=None)
Reward(total=None, terms={"rule": 0.1}, unscored="judge_failed")
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Reward:
    """What an episode earned.

    total: the number trained on, or None when a term could not be computed. terms: each term's share of the total, as
    far as computed. unscored: None, or the cause why there is no total.
    """

    total: float | None
    terms: dict[str, float]
    unscored: str | None = None

    def __post_init__(self) -> None:
        if (self.total is None) == (self.unscored is None):
            raise ValueError(f"a reward has either a total or a cause why not, got {self.total} and {self.unscored!r}")
        numbers = [*self.terms.values(), *([] if self.total is None else [self.total])]
        if not all(math.isfinite(number) for number in numbers):
            raise ValueError(f"a reward must be finite, got {self.total} with terms {self.terms}")


def weighted_sum(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The sum of each score times its weight.

    Raises:
        ValueError: a score without a weight, or a weight without a score.
    """
    if scores.keys() != weights.keys():
        raise ValueError(f"scores {sorted(scores)} do not fit weights {sorted(weights)}")
    return math.fsum(scores[name] * weights[name] for name in scores)
