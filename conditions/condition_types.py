"""What the tables of conditions hold, as frozen types that pydantic reads (`table.py`)."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

Text = Annotated[str, Field(pattern=r"\S")]
Texts = Annotated[tuple[Text, ...], Field(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Weights = Annotated[Mapping[str, Share], Field(min_length=1)]
OLDEST = 120  # years
FORM = ConfigDict(extra="forbid")
_TERM = re.compile(r"\*([^*]+)\*")


@dataclass(frozen=True, config=FORM)
class Phrase:
    """What a patient may have or say: clinical names, own wordings, words that name it.

    alarming: a symptom that no patient has by chance, only with a condition that names it.
    """

    zh: Text
    en: Text
    lay: Texts = ()
    longer: Texts = ()
    lay_en: Texts = ()
    ask: Texts = ()
    alarming: bool = False


@dataclass(frozen=True, config=FORM)
class Facet:
    """A side of a complaint, such as its onset, and its values."""

    zh: Text
    en: Text
    usual: Weights
    values: Mapping[str, Phrase]


@dataclass(frozen=True, config=FORM)
class Range:
    """Reference range with mean and sd, by sex ("any": both) and age (years, both ends included)."""

    low: float
    high: float
    mean: float = float("nan")
    sd: float = float("nan")
    sex: Literal["female", "male", "any"] = "any"
    ages: tuple[int, int] = (0, OLDEST)

    def __post_init__(self) -> None:
        if self.mean != self.mean:
            object.__setattr__(self, "mean", (self.low + self.high) / 2)
            object.__setattr__(self, "sd", (self.high - self.low) / 6)


@dataclass(frozen=True, config=FORM)
class Part:
    """One number of an examination."""

    en: Text
    zh: Text
    decimals: int
    normal: tuple[Range, ...]
    unit: str = ""

    def reference(self, sex: str, age: int) -> Range:
        """Return the range for "female" or "male" and an age in years."""
        return next(
            r for r in self.normal if r.sex in ("any", sex) and r.ages[0] <= age <= r.ages[1]
        )


@dataclass(frozen=True, config=FORM)
class Spread:
    """Numbers of a finding, in the unit of its part."""

    mean: float
    sd: float


@dataclass(frozen=True, config=FORM)
class Examination:
    """An examination: numbers in `parts`, or the texts of a normal result."""

    kind: Literal["lab", "imaging", "physical", "procedure"]
    en: Text
    zh: Text
    aliases_en: Texts
    aliases_zh: Texts
    parts: Mapping[str, Part] = field(default_factory=dict)
    normal: Texts = ()
    only: Literal["female", "male", "any"] = "any"


@dataclass(frozen=True, config=FORM)
class Condition:
    """A condition. `findings` hold, by examination, the numbers by part, or texts with weights."""

    en: Text
    zh: Text
    aliases_en: Texts
    aliases_zh: Texts
    department: str
    ages: tuple[int, int]
    female: Share
    complaints: Texts
    symptoms: Weights
    facets: Mapping[str, Weights]
    examinations: Mapping[str, Mapping[str, Spread | Share]]
    key: Texts
    advice_zh: Texts
    optional: tuple[Text, ...] = ()
    smokers_zh: Text | None = None
    drinkers_zh: Text | None = None

    @property
    def recommended(self) -> Texts:
        """The key examinations that a guideline recommends."""
        return tuple(name for name in self.key if name not in self.optional)

    def advice_for(self, habits: object) -> Texts:
        """Return the items of advice in Chinese. The last one may be for smokers or drinkers alone."""
        if habits == "smoking" and self.smokers_zh:
            return (*self.advice_zh, self.smokers_zh)
        if habits in ("alcohol", "seafood_beer") and self.drinkers_zh:
            return (*self.advice_zh, self.drinkers_zh)
        return self.advice_zh


@dataclass(frozen=True, config=FORM)
class Tables:
    """All tables, by name."""

    general: Mapping[str, Phrase]
    symptoms: Mapping[str, Phrase]
    facets: Mapping[str, Facet]
    complaints: Mapping[str, Phrase]
    examinations: Mapping[str, Examination]
    conditions: Mapping[str, Condition]

    def group(self, complaint: str) -> dict[str, Condition]:
        """Return the conditions that begin with a complaint."""
        return {
            name: condition
            for name, condition in self.conditions.items()
            if complaint in condition.complaints
        }


def terms(item: str) -> Texts:
    """Return the *marked* terms of an item of advice."""
    return tuple(_TERM.findall(item))
