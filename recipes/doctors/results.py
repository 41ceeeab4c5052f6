"""Results of patients with a condition, and results read back from a report.

draw_results(tables, ["cbc"], {"age": 40, "sex": "female"}, Random(0))["cbc"].text
"""

import re
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from conditions.condition_types import Condition, Examination, Spread, Tables
from conditions.examination_results import Result, draw_result

# Whether each symptom is present, the value of every facet, age and sex
Patient = dict[str, str | bool | int]
Finding = Mapping[str, Spread | float]
# What only patients with a symptom show, and how much where their condition does not say
SYMPTOMATIC: Mapping[str, tuple[str, Spread]] = {
    "temperature": ("fever", Spread(38.2, 0.25)),
    "urgency_episodes": ("urgency", Spread(4.0, 0.8)),
}
# What an earlier illness shows, whatever the condition
HISTORY: Mapping[str, Mapping[str, Finding]] = {
    "diabetes": {
        "fasting_glucose": {"glucose": Spread(8.5, 0.8)},
        "hba1c": {"hba1c": Spread(7.5, 0.5)},
    }
}


def draw_results(
    tables: Tables, names: Iterable[str], patient: Patient, random: Random, condition: Condition
) -> dict[str, Result]:
    """Return results of a patient (`age`, `sex`, symptoms where known) by the names given."""
    chance = random.random()
    earlier = HISTORY.get(str(patient.get("history")), {})
    found = {}
    for name in names:
        examination = tables.examinations[name]
        finding = {**condition.examinations.get(name, {}), **earlier.get(name, {})}
        spreads = {
            part: spread
            for part in examination.parts
            if (spread := spread_of(finding, part, patient))
        }
        found[name] = draw_result(
            name,
            examination,
            str(patient["sex"]),
            int(patient["age"]),
            random,
            chance,
            texts_of(examination, finding),
            spreads,
        )
    return found


def texts_of(examination: Examination, finding: Finding) -> dict[str, float]:
    """Return what may be seen, each with its share."""
    found = {text: share for text, share in finding.items() if not isinstance(share, Spread)}
    return found or {text: 1 / len(examination.normal) for text in examination.normal}


def spread_of(finding: Finding, part: str, patient: Mapping[str, Any]) -> Spread | None:
    """Return the spread of a finding's numbers, None if normal."""
    spread = finding.get(part)
    known = spread if isinstance(spread, Spread) else None
    if part in SYMPTOMATIC:
        symptom, usual = SYMPTOMATIC[part]
        return (known or usual) if patient.get(symptom) else None
    return known


def read_result(tables: Tables, name: str, text: str, sex: str, age: int) -> Result:
    """Return the result that a report describes."""
    examination = tables.examinations[name]
    numbers = {}
    for part, one in examination.parts.items():
        if found := re.search(rf"(?:^|; ){re.escape(one.en)} (-?[\d.]+)", text):
            numbers[part] = float(found[1])
    return Result(name, examination, sex, age, numbers, "" if examination.parts else text)
