"""Patients drawn from the tables of conditions, and how often naive Bayes over the same tables names what they have.

It bounds what any doctor can learn by asking: where it cannot tell the conditions of a complaint apart, nobody can.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import exp, log

from data.conditions.check import BACKGROUND, items_of, weights_of
from data.conditions.records import Condition, Patient, Range, Spread, Tables
from data.conditions.results import FEVER, Result, spread_of, texts_of

PATIENTS = 80  # drawn of each condition
UNSEEN = 1e-3  # the weight of what a condition does not have
FARTHEST = 1e-5  # of a result: the density of a number is small wherever findings spread widely

Value = str | bool | int | Result


@dataclass(frozen=True)
class Separability:
    """Shares of drawn patients whose condition is named, by what is known of them; the first of the `best` questions
    is the one that tells most."""

    best: tuple[str, ...]
    alone: float
    age_and_sex: float
    one_best: float
    three_best: float
    everything: float


def draw_patient(tables: Tables, condition: Condition, rng: random.Random) -> Patient:
    """One invented patient with the condition."""
    patient: Patient = {
        "age": rng.randint(*condition.ages), "sex": "female" if rng.random() < condition.female else "male",
    }  # fmt: skip
    for facet in tables.facets:
        weights = weights_of(tables, condition, facet)
        (patient[facet],) = rng.choices(list(weights), list(weights.values()))
    patient |= {name: rng.random() < condition.symptoms.get(name, BACKGROUND) for name in tables.symptoms}
    return patient


def log_likelihood(tables: Tables, condition: Condition, item: str, value: Value) -> float:
    """Of an item of a patient with the condition; the result of an examination is one too."""
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
        chance = weights_of(tables, condition, item).get(str(value), 0)
    return log(max(chance, UNSEEN))


def _chances(condition: Condition, result: Result) -> Iterator[float]:
    """Of what is seen, or of each number, against that of the middle of what is normal."""
    finding, fever = condition.examinations.get(result.name, {}), condition.symptoms.get("fever", BACKGROUND)
    if result.seen:
        yield texts_of(result.examination, finding).get(result.seen, 0)
    for part, value in result.numbers.items():
        usual = result.range_of(part)
        abnormal = spread_of(finding, part, fever=True)
        share = 0.0 if not abnormal else fever if part == "temperature" else 1.0
        healthy = _density(value, Spread(usual.mean, usual.sd), usual)
        yield share * _density(value, abnormal or FEVER, usual) + (1 - share) * healthy


def _density(value: float, spread: Spread, usual: Range) -> float:
    return exp(-(((value - spread.mean) / spread.sd) ** 2) / 2) * usual.sd / spread.sd


def separability(tables: Tables, complaint: str, seed: int = 0) -> Separability:
    """How well the conditions of a complaint, each as likely as the others, can be told apart."""
    rng, group = random.Random(seed), list(tables.group(complaint).values())
    items = ["age", "sex", *items_of(tables, group)]
    drawn = [(truth, draw_patient(tables, one, rng)) for truth, one in enumerate(group) for _ in range(PATIENTS)]
    evidence = [
        (truth, {item: [log_likelihood(tables, one, item, patient[item]) for one in group] for item in items})
        for truth, patient in drawn
    ]

    def accuracy(known: Iterable[str]) -> float:
        """The share of patients named right; a tie of several counts as much as a guess among them."""
        known, right = list(known), 0.0
        for truth, logs in evidence:
            scores = [round(sum(logs[item][index] for item in known), 9) for index in range(len(group))]
            right += (scores[truth] == max(scores)) / scores.count(max(scores))
        return right / len(evidence)

    best: list[str] = []
    for _ in range(3):
        best.append(max(items[2:], key=lambda item: accuracy([*best, item])))
    shares = [accuracy(known) for known in ([], ["age", "sex"], best[:1], best, items)]
    return Separability(tuple(best), *shares)
