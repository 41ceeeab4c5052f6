"""Whether the tables of conditions fit together, and how well asking tells the conditions of a
complaint apart.

assert list(faults(load_tables())) == []
separability(load_tables(), "cough").three_best      # 0.97
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import isclose

from data.conditions.bayes import draw_patient, log_likelihood
from data.conditions.condition_types import (
    BACKGROUND,
    OLDEST,
    Condition,
    Examination,
    Facet,
    Phrase,
    Spread,
    Tables,
    Weights,
    terms,
)

SEXES = ("female", "male")
SMALLEST_GROUP = 4
KEY_EXAMINATIONS = range(2, 6)
# How far apart two conditions must be in one symptom or facet: 0.85 against 0.15. What is said to
# distinguish, less.
SEPARATE, DISTINGUISHING = 0.7, 0.5
PATIENTS = 80  # drawn of each condition

Fault = tuple[str, str]  # key, what is wrong


def faults(tables: Tables) -> Iterator[str]:
    """Names that are not known or stand for two things, weights that do not add up to 1, complaints
    of too few conditions, two that nothing tells apart, ranges that leave out a sex or an age.
    """
    found = (
        _in_phrases(tables),
        _in_examinations(tables.examinations),
        _in_conditions(tables),
        _in_groups(tables),
    )
    yield from (f"{key}: {reason}" for part in found for key, reason in part)


def distance(tables: Tables, one: Condition, other: Condition, item: str) -> float:
    """How far apart two conditions are in a symptom or facet: the share of patients that it tells
    apart, 0 to 1.
    """
    if item in tables.symptoms:
        return abs(one.symptoms.get(item, BACKGROUND) - other.symptoms.get(item, BACKGROUND))
    mine, theirs = (tables.weights_of(condition, item) for condition in (one, other))
    return sum(abs(mine.get(value, 0) - theirs.get(value, 0)) for value in {*mine, *theirs}) / 2


def _in_phrases(tables: Tables) -> Iterator[Fault]:
    for name, facet in tables.facets.items():
        yield from _weights(f"facets.{name}.usual", facet.usual, facet.values)
    asked: dict[str, Phrase | Facet] = {**tables.general, **tables.symptoms, **tables.facets}
    for language in ("ask", "ask_en"):
        yield from _shared(
            {name: getattr(thing, language) for name, thing in asked.items()}, "ask-word"
        )
        yield from (
            (name, f"no {language}")
            for name, thing in asked.items()
            if not getattr(thing, language)
        )


def _in_examinations(examinations: Mapping[str, Examination]) -> Iterator[Fault]:
    for name, one in examinations.items():
        if bool(one.parts) == bool(one.normal):
            yield name, "expected either parts or normal texts"
        for part, numbers in one.parts.items():
            for sex, age in ((sex, age) for sex in SEXES for age in range(OLDEST + 1)):
                if not any(
                    r.sex in ("any", sex) and r.ages[0] <= age <= r.ages[1] for r in numbers.normal
                ):
                    yield f"{name}.parts.{part}.normal", f"no range for a {sex} of {age}"
            if not all(r.low < r.mean < r.high and r.sd > 0 for r in numbers.normal):
                yield f"{name}.parts.{part}.normal", "expected low < mean < high and sd above 0"
    yield from _shared(
        {name: (one.en, *one.aliases_en) for name, one in examinations.items()}, "name"
    )
    yield from _shared(
        {name: (one.zh, *one.aliases_zh) for name, one in examinations.items()}, "name"
    )


def _in_conditions(tables: Tables) -> Iterator[Fault]:
    for name, one in tables.conditions.items():
        for key, fault in _in_condition(tables, one):
            yield f"conditions.{name}.{key}", fault
    yield from _shared(
        {name: (one.en, *one.aliases_en) for name, one in tables.conditions.items()}, "name"
    )
    yield from _shared(
        {name: (one.zh, *one.aliases_zh) for name, one in tables.conditions.items()}, "name"
    )


def _in_condition(tables: Tables, one: Condition) -> Iterator[Fault]:
    yield from _unknown("department", [one.department], tables.departments)
    yield from _unknown("complaints", one.complaints, tables.complaints)
    yield from _unknown("symptoms", one.symptoms, tables.symptoms)
    yield from _unknown("facets", one.facets, tables.facets)
    yield from _unknown("examinations", one.examinations, tables.examinations)
    yield from _unknown("key", one.key, one.examinations)
    if not 0 <= one.ages[0] < one.ages[1]:
        yield "ages", f"{one.ages}, expected [youngest, oldest] in years"
    if len(one.key) not in KEY_EXAMINATIONS:
        yield (
            "key",
            f"{len(one.key)} examinations, expected {KEY_EXAMINATIONS[0]} to {KEY_EXAMINATIONS[-1]}",
        )
    for facet, weights in one.facets.items():
        yield from _weights(f"facets.{facet}", weights, tables.facets[facet].values)
    for examination, finding in one.examinations.items():
        yield from _finding(
            f"examinations.{examination}", finding, tables.examinations[examination]
        )
    for language in ("advice", "red_flags"):
        if len(getattr(one, f"{language}_en")) != len(getattr(one, f"{language}_zh")):
            yield language, "not the same number of items in both languages"
    bare = [item for item in (*one.advice_en, *one.advice_zh) if not terms(item)]
    yield from (("advice", f"no *term* marked in {item!r}") for item in bare)
    yield from _distinguishing(tables, one)


def _distinguishing(tables: Tables, one: Condition) -> Iterator[Fault]:
    group = [name for complaint in one.complaints for name in tables.group(complaint)]
    yield from _unknown("distinguishing", one.distinguishing, group)
    if len(one.distinguishing) < 2:
        yield "distinguishing", "expected at least two other conditions of the complaint"
    for other, items in one.distinguishing.items():
        yield from _unknown(f"distinguishing.{other}", items, [*tables.symptoms, *tables.facets])
        for item in items:
            if (apart := distance(tables, one, tables.conditions[other], item)) < DISTINGUISHING:
                yield (
                    f"distinguishing.{other}",
                    f"{item} differs by {apart:.2f}, expected at least {DISTINGUISHING}",
                )


def _finding(
    key: str, finding: Mapping[str, Spread | float], examination: Examination
) -> Iterator[Fault]:
    numbers = [value for value in finding.values() if isinstance(value, Spread)]
    if examination.parts:
        yield from _unknown(key, finding, examination.parts)
        if len(numbers) < len(finding) or any(value.sd <= 0 for value in numbers):
            yield key, "expected a mean and an sd above 0 of each part"
    elif numbers:
        yield key, "expected texts with weights"
    else:
        shares = {text: value for text, value in finding.items() if not isinstance(value, Spread)}
        yield from _weights(key, shares, finding)


def _in_groups(tables: Tables) -> Iterator[Fault]:
    for complaint in tables.complaints:
        group = tables.group(complaint)
        if len(group) < SMALLEST_GROUP:
            yield (
                complaint,
                f"{len(group)} conditions begin with it, expected at least {SMALLEST_GROUP}",
            )
        for one, other in combinations(group, 2):
            pair = group[one], group[other]
            if max(distance(tables, *pair, item) for item in tables.items_of(pair)) < SEPARATE:
                yield (
                    complaint,
                    f"{one} and {other} differ by less than {SEPARATE} in every symptom and facet",
                )


def _unknown(key: str, names: Iterable[str], known: Iterable[str]) -> Iterator[Fault]:
    known = set(known)
    yield from ((key, f"{name!r} is not known") for name in names if name not in known)


def _weights(key: str, weights: Weights, known: Iterable[str]) -> Iterator[Fault]:
    yield from _unknown(key, weights, known)
    if not isclose(total := sum(weights.values()), 1, abs_tol=1e-6):
        yield key, f"the weights add up to {total:g}, expected 1"


def _shared(words: Mapping[str, Iterable[str]], what: str) -> Iterator[Fault]:
    """What two things are both called, whatever the case."""
    seen: dict[str, str] = {}
    for name, texts in words.items():
        for text in texts:
            if text.casefold() in seen:
                yield name, f"the {what} {text!r} is already that of {seen[text.casefold()]}"
            seen[text.casefold()] = name


@dataclass(frozen=True)
class Separability:
    """Shares of drawn patients whose condition is named, by what is known of them; the first of the
    `best` questions is the one that tells most.
    """

    best: tuple[str, ...]
    alone: float
    age_and_sex: float
    one_best: float
    three_best: float
    everything: float


def separability(tables: Tables, complaint: str, seed: int = 0) -> Separability:
    """How well the conditions of a complaint, each as likely as the others, can be told apart."""
    rng, group = random.Random(seed), list(tables.group(complaint).values())
    items = ["age", "sex", *tables.items_of(group)]
    drawn = [
        (truth, draw_patient(tables, one, rng))
        for truth, one in enumerate(group)
        for _ in range(PATIENTS)
    ]
    evidence = [
        (
            truth,
            {
                item: [log_likelihood(tables, one, item, patient[item]) for one in group]
                for item in items
            },
        )
        for truth, patient in drawn
    ]

    def accuracy(known: Iterable[str]) -> float:
        """The share of patients named right; a tie of several counts as much as a guess among them."""
        known, right = list(known), 0.0
        for truth, logs in evidence:
            scores = [
                round(sum(logs[item][index] for item in known), 9) for index in range(len(group))
            ]
            right += (scores[truth] == max(scores)) / scores.count(max(scores))
        return right / len(evidence)

    best: list[str] = []
    for _ in range(3):
        best.append(max(items[2:], key=lambda item: accuracy([*best, item])))
    shares = [accuracy(known) for known in ([], ["age", "sex"], best[:1], best, items)]
    return Separability(tuple(best), *shares)
