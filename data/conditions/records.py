"""What the tables of conditions hold, as frozen types; `table.py` reads and checks them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Texts = tuple[str, ...]
Share = float  # in [0, 1]
Weights = Mapping[str, Share]
Patient = dict[str, str | bool | int]  # every symptom (had or not), the value of every facet, age and sex
OLDEST = 120  # years
_TERM = re.compile(r"\*([^*]+)\*")


@dataclass(frozen=True)
class Phrase:
    """A thing a patient may have or say: its clinical names, a patient's wordings, the words that ask for it."""

    zh: str
    en: str
    lay: Texts = ()
    lay_en: Texts = ()
    ask: Texts = ()
    ask_en: Texts = ()


@dataclass(frozen=True)
class Facet:
    """A side of a complaint, such as its onset: the words that ask for it, and its values."""

    zh: str
    en: str
    ask: Texts
    ask_en: Texts
    usual: Weights
    values: Mapping[str, Phrase]


@dataclass(frozen=True)
class Range:
    """Reference range of a sex ("any": both) and of ages (years, both ends counted), mean and sd of the healthy."""

    low: float
    high: float
    mean: float = float("nan")
    sd: float = float("nan")
    sex: str = "any"
    ages: tuple[int, int] = (0, OLDEST)

    def __post_init__(self) -> None:
        if self.mean != self.mean:
            object.__setattr__(self, "mean", (self.low + self.high) / 2)
            object.__setattr__(self, "sd", (self.high - self.low) / 6)


@dataclass(frozen=True)
class Part:
    """One number of an examination."""

    en: str
    zh: str
    decimals: int
    normal: tuple[Range, ...]
    unit: str = ""

    def reference(self, sex: str, age: int) -> Range:
        """The range for "female" or "male" and an age in years."""
        return next(r for r in self.normal if r.sex in ("any", sex) and r.ages[0] <= age <= r.ages[1])


@dataclass(frozen=True)
class Spread:
    """Numbers of a finding, in the unit of its part."""

    mean: float
    sd: float


@dataclass(frozen=True)
class Examination:
    """An examination: numbers in `parts`, or else the texts of a normal result."""

    kind: str
    en: str
    zh: str
    aliases_en: Texts
    aliases_zh: Texts
    parts: Mapping[str, Part] = field(default_factory=dict)
    normal: Texts = ()
    normal_zh: Texts = ()
    only: str = "any"


@dataclass(frozen=True)
class Condition:
    """A condition; `findings` are by examination the numbers by part, or texts with weights."""

    en: str
    zh: str
    aliases_en: Texts
    aliases_zh: Texts
    department: str
    ages: tuple[int, int]
    female: Share
    complaints: Texts
    symptoms: Weights
    facets: Mapping[str, Weights]
    distinguishing: Mapping[str, Texts]
    examinations: Mapping[str, Mapping[str, Spread | float]]
    key: Texts
    advice_en: Texts
    advice_zh: Texts
    red_flags_en: Texts
    red_flags_zh: Texts


@dataclass(frozen=True)
class Tables:
    """All of it, by name."""

    general: Mapping[str, Phrase]
    symptoms: Mapping[str, Phrase]
    facets: Mapping[str, Facet]
    complaints: Mapping[str, Phrase]
    examinations: Mapping[str, Examination]
    departments: Mapping[str, Phrase]
    conditions: Mapping[str, Condition]

    def group(self, complaint: str) -> dict[str, Condition]:
        """The conditions that begin with a complaint."""
        return {name: condition for name, condition in self.conditions.items() if complaint in condition.complaints}


def terms(item: str) -> Texts:
    """The *marked* terms of an item of advice."""
    return tuple(_TERM.findall(item))
