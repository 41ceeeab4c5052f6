"""Patients drawn from the tables of conditions, and how likely a condition makes what is observed
of one: naive Bayes.

It bounds what any doctor can learn by asking: where it cannot separate the conditions of a
complaint, no doctor can.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import exp, log

from conditions.condition_types import BACKGROUND, Condition, Patient, Range, Spread, Tables
from conditions.examination_results import FEVER, Result, spread_of, texts_of

UNSEEN = 1e-3  # the weight of what a condition does not have
# The least weight of a result: the density of a number is small where findings spread widely
FARTHEST = 1e-5

Value = str | bool | int | Result


def draw_patient(tables: Tables, condition: Condition, rng: random.Random) -> Patient:
    """Return one invented patient with the condition."""
    patient: Patient = {
        "age": rng.randint(*condition.ages), "sex": "female" if rng.random() < condition.female else "male",
    }  # fmt: skip
    for facet in tables.facets:
        weights = tables.weights_of(condition, facet)
        (patient[facet],) = rng.choices(list(weights), list(weights.values()))
    patient |= {
        name: rng.random() < condition.symptoms.get(name, BACKGROUND) for name in tables.symptoms
    }
    if patient.get("vomiting"):
        patient["nausea"] = True
    return patient


def log_likelihood(tables: Tables, condition: Condition, item: str, value: Value) -> float:
    """Return the log-likelihood of an item of a patient with the condition; the result of an
    examination is an item, too.
    """
    if isinstance(value, Result):
        return sum(log(max(chance, FARTHEST)) for chance in _chances(condition, value))
    if item in tables.symptoms:
        share = condition.symptoms.get(item, BACKGROUND)
        chance = share if value else 1 - share
    elif item == "sex":
        chance = condition.female if value == "female" else 1 - condition.female
    elif item == "age":
        youngest, oldest = condition.ages
        chance = (youngest <= int(value) <= oldest) / (oldest - youngest + 1)
    else:
        chance = tables.weights_of(condition, item).get(str(value), 0)
    return log(max(chance, UNSEEN))


def _chances(condition: Condition, result: Result) -> Iterator[float]:
    """Yield the weight of what is seen, or of each number, relative to that of the middle of the
    normal range.
    """
    finding = condition.examinations.get(result.name, {})
    fever = condition.symptoms.get("fever", BACKGROUND)
    if result.seen:
        yield texts_of(result.examination, finding).get(result.seen, 0)
    for part, value in result.numbers.items():
        usual = result.range_of(part)
        abnormal = spread_of(finding, part, fever=True)
        share = 1.0 if abnormal else 0.0
        if abnormal and part == "temperature":
            share = fever
        healthy = _density(value, Spread(usual.mean, usual.sd), usual)
        yield share * _density(value, abnormal or FEVER, usual) + (1 - share) * healthy


def _density(value: float, spread: Spread, usual: Range) -> float:
    return exp(-(((value - spread.mean) / spread.sd) ** 2) / 2) * usual.sd / spread.sd
