"""Faults of the tables of conditions that one value alone does not show; `check_tables` raises the first it finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from math import isclose

from common.command import UsageError
from data.conditions.records import OLDEST, Condition, Examination, Facet, Phrase, Spread, Tables, Weights, terms

KINDS = ("lab", "imaging", "physical", "procedure")
SEXES = ("female", "male")
SMALLEST_GROUP = 4
KEY_EXAMINATIONS = range(2, 6)
# How far apart two conditions must be in one symptom or facet: 0.85 against 0.15. What is said to distinguish, less.
SEPARATE, DISTINGUISHING = 0.7, 0.5
# A symptom that a condition does not name.
BACKGROUND = 0.02

Fault = tuple[str, str]  # key, what is wrong


class TableError(UsageError):
    """A table that cannot be used; the message names the file and the key."""


def check_tables(tables: Tables) -> None:
    """Refuse tables that do not fit together.

    Raises:
        TableError: an unknown id, weights that do not add up to 1, a name or ask-word of two things, a complaint of too
            few conditions, two of them that nothing tells apart, or a range that leaves out a sex or an age.
    """
    faults = {
        "phrases.toml": _in_phrases(tables),
        "examinations.toml": _in_examinations(tables.examinations),
        "conditions.toml": _in_conditions(tables),
        "complaints.toml": _in_groups(tables),
    }
    for file, found in faults.items():
        for key, reason in found:
            raise TableError(f"{file}, {key}: {reason}")


def distance(tables: Tables, one: Condition, other: Condition, item: str) -> float:
    """How far apart two conditions are in a symptom or facet: the share of patients that it tells apart, 0 to 1."""
    if item in tables.symptoms:
        return abs(one.symptoms.get(item, BACKGROUND) - other.symptoms.get(item, BACKGROUND))
    mine, theirs = (weights_of(tables, condition, item) for condition in (one, other))
    return sum(abs(mine.get(value, 0) - theirs.get(value, 0)) for value in {*mine, *theirs}) / 2


def weights_of(tables: Tables, condition: Condition, facet: str) -> Weights:
    """The weights of a facet's values, the usual ones where the condition says nothing of it."""
    return condition.facets.get(facet) or tables.facets[facet].usual


def items_of(tables: Tables, conditions: Iterable[Condition]) -> list[str]:
    """The symptoms that any of the conditions names, and every facet."""
    return [*dict.fromkeys(name for condition in conditions for name in condition.symptoms), *tables.facets]


def _in_phrases(tables: Tables) -> Iterator[Fault]:
    for name, facet in tables.facets.items():
        yield from _weights(f"facets.{name}.usual", facet.usual, facet.values)
    asked: dict[str, Phrase | Facet] = {**tables.general, **tables.symptoms, **tables.facets}
    for language in ("ask", "ask_en"):
        yield from _shared({name: getattr(thing, language) for name, thing in asked.items()}, "ask-word")
        yield from ((name, f"no {language}") for name, thing in asked.items() if not getattr(thing, language))


def _in_examinations(examinations: Mapping[str, Examination]) -> Iterator[Fault]:
    for name, one in examinations.items():
        if one.kind not in KINDS:
            yield f"{name}.kind", f"{one.kind!r}, expected one of {', '.join(KINDS)}"
        if one.only not in (*SEXES, "any"):
            yield f"{name}.only", f"{one.only!r}, expected female, male or any"
        if bool(one.parts) == bool(one.normal):
            yield name, "expected either parts or normal texts"
        for part, numbers in one.parts.items():
            for sex, age in ((sex, age) for sex in SEXES for age in range(OLDEST + 1)):
                if not any(r.sex in ("any", sex) and r.ages[0] <= age <= r.ages[1] for r in numbers.normal):
                    yield f"{name}.parts.{part}.normal", f"no range for a {sex} of {age}"
            if not all(r.low < r.mean < r.high and r.sd > 0 for r in numbers.normal):
                yield f"{name}.parts.{part}.normal", "expected low < mean < high and sd above 0"
    yield from _shared({name: (one.en, *one.aliases_en) for name, one in examinations.items()}, "name")
    yield from _shared({name: (one.zh, *one.aliases_zh) for name, one in examinations.items()}, "name")


def _in_conditions(tables: Tables) -> Iterator[Fault]:
    for name, one in tables.conditions.items():
        for key, fault in _in_condition(tables, one):
            yield f"conditions.{name}.{key}", fault
    yield from _shared({name: (one.en, *one.aliases_en) for name, one in tables.conditions.items()}, "name")
    yield from _shared({name: (one.zh, *one.aliases_zh) for name, one in tables.conditions.items()}, "name")


def _in_condition(tables: Tables, one: Condition) -> Iterator[Fault]:
    yield from _unknown("department", [one.department], tables.departments)
    yield from _unknown("complaints", one.complaints, tables.complaints)
    yield from _unknown("symptoms", one.symptoms, tables.symptoms)
    yield from _unknown("facets", one.facets, tables.facets)
    yield from _unknown("examinations", one.examinations, tables.examinations)
    yield from _unknown("key", one.key, one.examinations)
    if len(one.key) not in KEY_EXAMINATIONS:
        yield "key", f"{len(one.key)} examinations, expected {KEY_EXAMINATIONS[0]} to {KEY_EXAMINATIONS[-1]}"
    for facet, weights in one.facets.items():
        yield from _weights(f"facets.{facet}", weights, tables.facets[facet].values)
    for examination, finding in one.examinations.items():
        yield from _finding(f"examinations.{examination}", finding, tables.examinations[examination])
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
                yield f"distinguishing.{other}", f"{item} differs by {apart:.2f}, expected at least {DISTINGUISHING}"


def _finding(key: str, finding: Mapping[str, Spread | float], examination: Examination) -> Iterator[Fault]:
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
            yield complaint, f"{len(group)} conditions begin with it, expected at least {SMALLEST_GROUP}"
        for one, other in combinations(group, 2):
            pair = group[one], group[other]
            if max(distance(tables, *pair, item) for item in items_of(tables, pair)) < SEPARATE:
                yield complaint, f"{one} and {other} differ by less than {SEPARATE} in every symptom and facet"


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
