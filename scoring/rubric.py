"""Rewards as named terms with their weights. An unscored episode is not worth 0."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from common.command import UsageError

ROUNDING = 1e-6  # a sum of float32, whose steps near 1 are 6e-8 to 1.2e-7, is no mistake


@dataclass(frozen=True)
class Rubric:
    """Which terms make the reward, their weights (above 0), and the terms that multiply them."""

    weights: Mapping[str, float]
    factors: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def highest(self) -> float:
        return math.fsum(self.weights.values())

    @property
    def names(self) -> set[str]:
        return {*self.weights, *chain(*self.factors.values())}

    def factor(self, name: str, values: Mapping[str, float]) -> float:
        """Return the product of a term's factors. A factor without a value does not apply."""
        return math.prod(values.get(factor, 1.0) for factor in self.factors.get(name, ()))

    def weigh(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return each value times weight and factors. Raises ValueError: not in [0, 1], no term."""
        if not values.keys() <= self.names:
            raise ValueError(f"terms {sorted(values)} do not fit weights {sorted(self.weights)}")
        outside = {name: value for name, value in values.items() if not 0 <= value <= 1}
        if outside:
            raise ValueError(f"values of terms lie in [0, 1], got {outside}")
        return {
            name: values[name] * weight * self.factor(name, values)
            for name, weight in self.weights.items()
            if name in values
        }


@dataclass(frozen=True)
class Reward:
    """What an episode earned. docs/rewards.md explains it."""

    total: float | None  # what is trained on; None: a term could not be computed
    terms: dict[str, float]  # shares of the total; a penalty is below 0; {}: not taken apart
    unscored: str | None = None  # the cause why there is no total
    score: float | None = None  # the judge's, in [0, 1], before weights and penalties
    factor: float = 1.0  # the part of the score that the rubric's factors leave
    measures: dict[str, float] = field(default_factory=dict)  # their mean says something
    counters: dict[str, float] = field(default_factory=dict)  # their sum says something

    @property
    def worth(self) -> float:
        """The part of the score that is paid, before its weight. NaN without a score."""
        return math.nan if self.score is None else self.score * self.factor

    def __post_init__(self) -> None:
        for name in ("total", "score", "factor"):
            object.__setattr__(self, name, as_plain(getattr(self, name)))
        for name in ("terms", "measures", "counters"):
            found = getattr(self, name)
            object.__setattr__(self, name, {key: as_plain(found[key]) for key in found})
        if (self.total is None) == (self.unscored is None):
            raise ValueError(f"expected a total or a cause, got {self.total}, {self.unscored!r}")
        numbers = [*self.terms.values(), self.total or 0.0]
        if not all(math.isfinite(number) for number in numbers):
            raise ValueError(f"a reward must be finite, got {self.total} with terms {self.terms}")
        if self.score is not None and not 0 <= self.score <= 1:
            raise ValueError(f"a score lies in [0, 1], got {self.score}")
        if self.total is None or not self.terms:
            return
        paid = math.fsum(self.terms.values())
        if not math.isclose(paid, self.total, rel_tol=ROUNDING, abs_tol=ROUNDING):
            raise ValueError(f"terms add up to the total, got {self.terms} and {self.total}")


def as_plain(number: float | None) -> float | None:
    """Return a number as JSON takes it: those of numpy and torch become floats."""
    return number if number is None or isinstance(number, float | int) else float(number)


def parse_rubric(text: str, known: Collection[str]) -> Rubric:
    """Return the rubric of a text such as "rule=0.1,judge=1.0*format". Raises UsageError: not
    NAME=WEIGHT*NAME joined by commas, a name unknown or twice, or a weight that is not above 0.
    """
    weights: dict[str, float] = {}
    factors: dict[str, list[str]] = {}
    for part in text.split(","):
        name, equals, product = (piece.strip() for piece in part.partition("="))
        number, *factors[name] = (piece.strip() for piece in product.split("*"))
        if not equals:
            raise UsageError(f"{part.strip()!r} is not NAME=WEIGHT, as in {next(iter(known))}=0.1")
        for term in (term for term in (name, *factors[name]) if term not in known):
            raise UsageError(f"there is no term {term!r}; the terms are {', '.join(known)}")
        if name in weights:
            raise UsageError(f"the term {name!r} stands there twice")
        try:
            weights[name] = float(number)
        except ValueError:
            weights[name] = math.nan
        if not 0 < weights[name] < math.inf:
            expected = "expected a number above 0 (leave a term out instead)"
            raise UsageError(f"the weight of {name!r} is {number!r}; {expected}")
    return Rubric(weights, {name: others for name, others in factors.items() if others})
