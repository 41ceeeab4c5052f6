"""What examinations show, drawn from what is normal, or from the spreads of a finding.

random = Random(0)
draw_result("cbc", load_tables().examinations["cbc"], "female", 40, random, random.random()).text
"""

from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from types import MappingProxyType

from common.command import UsageError
from conditions.condition_types import Examination, Range, Spread

# Standard deviations that a drawn number is from the mean at most: none becomes negative
WIDEST = 2.5
ATTEMPTS = 200  # tries for numbers that fit together before the tables count as wrong
CREATININE = 88.4  # umol/L of one mg/dL
TRIGLYCERIDES = 2.2  # mmol/L that go with one mmol/L of cholesterol in VLDL
ONE = {"points": "point", "times": "time"}  # units that are words, behind a 1


def filtration(creatinine: float, sex: str, age: int) -> float:
    """Return the estimated GFR (mL/min/1.73m2) of a serum creatinine (umol/L)."""
    # CKD-EPI 2021 without race: Inker et al., N Engl J Med 2021;385:1737-49
    female = sex == "female"
    ratio = creatinine / CREATININE / (0.7 if female else 0.9)
    below = min(ratio, 1) ** (-0.241 if female else -0.302)
    above = max(ratio, 1) ** -1.200
    return 142 * below * above * 0.9938**age * (1.012 if female else 1)


def _derived(name: str, numbers: Mapping[str, float], sex: str, age: int) -> dict[str, float]:
    """Return the number of an examination that follows from its others, by its part."""
    if name == "renal_function":
        return {"egfr": filtration(numbers["creatinine"], sex, age)}
    if name == "lipids":  # Friedewald et al., Clin Chem 1972;18:499-502, solved for the total
        vldl = numbers["triglycerides"] / TRIGLYCERIDES
        return {"cholesterol": numbers["hdl"] + numbers["ldl"] + vldl}
    return {}


def _fit(name: str, numbers: Mapping[str, float]) -> bool:
    if name == "cbc":  # the counted kinds of white cells leave some per cent to the others
        counted = numbers["neutrophils"] + numbers["lymphocytes"] + numbers["eosinophils"]
        return 86 <= counted <= 99
    if name == "iron_studies":  # of all that transferrin can bind, in umol/L
        return 35 <= 100 * numbers["iron"] / numbers["transferrin_saturation"] <= 95
    return name != "vitals" or numbers["systolic"] - numbers["diastolic"] >= 25


@dataclass(frozen=True)
class Result:
    """The result of one examination of a patient: `numbers` by part, or what is `seen`."""

    name: str
    examination: Examination
    sex: str
    age: int
    numbers: Mapping[str, float] = field(default_factory=dict)
    seen: str = ""

    def range_of(self, part: str) -> Range:
        """Return the normal range of a part for this patient."""
        return self.examination.parts[part].reference(self.sex, self.age)

    @property
    def text(self) -> str:
        """The result as a report gives it, with numbers outside their range marked."""
        texts = []
        for name, value in self.numbers.items():
            part = self.examination.parts[name]
            usual = self.range_of(name)
            mark = " (high)" if value > usual.high else " (low)" if value < usual.low else ""
            unit = ONE.get(part.unit, part.unit) if value == 1 else part.unit
            texts.append(f"{part.en} {value:.{part.decimals}f} {unit}".rstrip() + mark)
        return "; ".join(texts) or self.seen

    @property
    def reference(self) -> str | None:
        """The ranges of its numbers."""
        ranges = []
        for name in self.numbers:
            part = self.examination.parts[name]
            usual = self.range_of(name)
            low = f"{usual.low:.{part.decimals}f}"
            ranges.append(f"{part.en} {low} to {usual.high:.{part.decimals}f}")
        return "; ".join(ranges) or None


def draw_result(
    name: str,
    examination: Examination,
    sex: str,
    age: int,
    random: Random,
    chance: float,
    texts: Mapping[str, float] = MappingProxyType({}),
    spreads: Mapping[str, Spread] = MappingProxyType({}),
) -> Result:
    """Return a result: one of the texts, by their shares, or numbers, normal without a spread.

    chance: chooses among the texts, so that those of one patient agree on side and severity.
    """
    if examination.normal:
        shares = texts or dict.fromkeys(examination.normal, 1 / len(examination.normal))
        index = bisect(list(accumulate(shares.values())), chance)
        return Result(name, examination, sex, age, seen=list(shares)[min(index, len(shares) - 1)])
    for _ in range(ATTEMPTS):
        numbers = {}
        for part, known in examination.parts.items():
            usual = known.reference(sex, age)
            spread = spreads.get(part)
            mean, sd = (spread.mean, spread.sd) if spread else (usual.mean, usual.sd)
            reach = WIDEST * sd
            low, high = (mean - reach, mean + reach) if spread else (usual.low, usual.high)
            while not low <= (value := random.gauss(mean, sd)) <= high:
                pass
            numbers[part] = round(value, known.decimals)
        is_usual = True
        for part, value in _derived(name, numbers, sex, age).items():
            known = examination.parts[part]
            numbers[part] = round(value, known.decimals)
            usual = known.reference(sex, age)
            is_usual = usual.low <= numbers[part] <= usual.high
        # Without a spread nothing is wrong with this patient
        if (spreads or is_usual) and _fit(name, numbers):
            return Result(name, examination, sex, age, numbers)
    raise UsageError(
        f"conditions.toml: no {examination.en} of a {sex} "
        f"patient of {age} whose numbers fit together"
    )
