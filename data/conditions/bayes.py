"""Patients drawn from the tables of conditions, and how often naive Bayes over the same tables names what they have.

It bounds what any doctor can learn by asking: where it cannot tell the conditions of a complaint apart, nobody can.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from math import log

from data.conditions.check import BACKGROUND, items_of, weights_of
from data.conditions.records import Condition, Tables

PATIENTS = 80  # drawn of each condition
UNSEEN = 1e-3  # the weight of what a condition does not have

Patient = dict[str, str | bool | int]  # every symptom (had or not), the value of every facet, age and sex


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


def log_likelihood(tables: Tables, condition: Condition, item: str, value: str | bool | int) -> float:
    """Of an item of a patient with the condition."""
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
