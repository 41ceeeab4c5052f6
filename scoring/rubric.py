"""Rewards as named terms with their weights; not scored is not zero.

rubric = parse_rubric("rule=0.1,judge=1.0", known=["rule", "judge"])
Reward(total=1.0, terms={"rule": 0.1, "judge": 0.9}, unscored=None)
Reward(total=None, terms={"rule": 0.1}, unscored="judge_failed")
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from common.command import UsageError


@dataclass(frozen=True)
class Rubric:
    """Which terms make the reward, and how much each weighs (above 0)."""

    weights: Mapping[str, float]

    @property
    def highest(self) -> float:
        """The most an episode can earn."""
        return math.fsum(self.weights.values())

    def weigh(self, values: Mapping[str, float]) -> dict[str, float]:
        """Each value, in [0, 1], times its weight.

        Raises ValueError: a value without a weight, or outside [0, 1].
        """
        if not values.keys() <= self.weights.keys():
            raise ValueError(f"terms {sorted(values)} do not fit weights {sorted(self.weights)}")
        outside = {name: value for name, value in values.items() if not 0 <= value <= 1}
        if outside:
            raise ValueError(f"values of terms lie in [0, 1], got {outside}")
        return {name: value * self.weights[name] for name, value in values.items()}


@dataclass(frozen=True)
class Reward:
    """What an episode earned.

    total: the number trained on, or None when a term could not be computed. terms: each term's share of the total, as
    far as computed. unscored: None, or the cause why there is no total. score: the judge's score of the answer before
    its weight, in [0, 1]. measures: numbers about this episode that earn nothing; their mean says something. counters:
    numbers whose sum says something.
    """

    total: float | None
    terms: dict[str, float]
    unscored: str | None = None
    score: float | None = None
    measures: dict[str, float] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.total is None) == (self.unscored is None):
            raise ValueError(f"a reward has either a total or a cause why not, got {self.total} and {self.unscored!r}")
        numbers = [*self.terms.values(), *([] if self.total is None else [self.total])]
        if not all(math.isfinite(number) for number in numbers):
            raise ValueError(f"a reward must be finite, got {self.total} with terms {self.terms}")


def parse_rubric(text: str, known: Collection[str]) -> Rubric:
    """The rubric of a text such as "rule=0.1,judge=1.0".

    Raises:
        UsageError: not NAME=WEIGHT joined by commas, a name unknown or twice, or a weight that is not above 0.
    """
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise UsageError(f"{part.strip()!r} is not NAME=WEIGHT, as in rule=0.1,judge=1.0")
        if name not in known:
            raise UsageError(f"there is no term {name!r}; the terms are {', '.join(known)}")
        if name in weights:
            raise UsageError(f"the term {name!r} stands there twice")
        try:
            weights[name] = float(number)
        except ValueError:
            weights[name] = math.nan
        if not 0 < weights[name] < math.inf:
            expected = "expected a number above 0 (leave a term out instead)"
            raise UsageError(f"the weight of {name!r} is {number!r}; {expected}")
    return Rubric(weights)
