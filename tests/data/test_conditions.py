"""The tables of conditions: what they promise, and that they fit together."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from math import isclose

import pytest

from common.command import UsageError
from data.conditions.bayes import draw_patient, log_likelihood
from data.conditions.condition_types import OLDEST, Condition, Spread, Tables, Weights, terms
from data.conditions.speech import Speech
from data.conditions.table import load_tables

SEXES = ("female", "male")


@pytest.fixture(scope="module")
def tables() -> Tables:
    return load_tables()


def test_only_smokers_are_advised_what_is_for_smokers(tables: Tables) -> None:
    for_smokers = [one for one in tables.conditions.values() if one.smokers_zh]
    assert for_smokers
    for condition in tables.conditions.values():
        added = [condition.smokers_zh] if condition in for_smokers else []
        assert [*condition.advice_for("smoking")] == [*condition.advice_zh, *added]
        assert condition.advice_for("none") == condition.advice_for(None) == condition.advice_zh


def test_no_name_stands_for_two_things(tables: Tables) -> None:
    """An order or a diagnosis of that name would be taken for either."""
    for things in (tables.conditions, tables.examinations):
        for one in ("en", "zh"):
            names = [
                name.casefold()
                for thing in things.values()
                for name in (getattr(thing, one), *getattr(thing, f"aliases_{one}"))
            ]
            assert len(set(names)) == len(names)


def named(tables: Tables, one: Condition) -> Iterator[tuple[Iterable[str], Iterable[str]]]:
    """What a condition names, beside what there is of that kind."""
    yield [one.department], tables.departments
    yield one.complaints, tables.complaints
    yield one.symptoms, tables.symptoms
    yield one.facets, tables.facets
    yield one.examinations, tables.examinations
    yield one.key, one.examinations
    yield one.distinguishing, tables.conditions
    for items in one.distinguishing.values():
        yield items, {*tables.symptoms, *tables.facets}
    for name, weights in one.facets.items():
        yield weights, tables.facets[name].values
    for name, finding in one.examinations.items():
        yield finding, tables.examinations[name].parts or finding


def test_what_a_condition_names_is_there(tables: Tables) -> None:
    for name, condition in tables.conditions.items():
        for said, known in named(tables, condition):
            assert set(said) <= set(known), name


def weights_of(tables: Tables) -> Iterator[Weights]:
    yield from (facet.usual for facet in tables.facets.values())
    for condition in tables.conditions.values():
        yield from condition.facets.values()
        for name, finding in condition.examinations.items():
            if not tables.examinations[name].parts:
                yield {text: share for text, share in finding.items() if isinstance(share, float)}


def test_weights_add_up_to_1(tables: Tables) -> None:
    for weights in weights_of(tables):
        assert isclose(sum(weights.values()), 1, abs_tol=1e-6), weights


def test_every_item_of_advice_has_a_term_to_be_known_by(tables: Tables) -> None:
    assert terms("see *urology* for a *urine test*") == ("urology", "urine test")
    for name, condition in tables.conditions.items():
        assert all(map(terms, (*condition.advice_en, *condition.advice_zh))), name


def abnormal(tables: Tables, name: str, examination: str) -> bool:
    """Whether the finding of a condition differs from what healthy people of its commoner sex and
    middle age have.
    """
    condition, known = tables.conditions[name], tables.examinations[examination]
    sex, age = SEXES[condition.female < 0.5], sum(condition.ages) // 2
    for part, value in condition.examinations[examination].items():
        if not isinstance(value, Spread):
            return not set(condition.examinations[examination]) <= set(known.normal)
        reference = known.parts[part].reference(sex, age)
        if not reference.low <= value.mean <= reference.high:
            return True
    return False


def test_a_key_examination_of_every_condition_is_abnormal(tables: Tables) -> None:
    for name, condition in tables.conditions.items():
        if name != "irritable_bowel":  # whatever is examined in it is normal
            assert any(abnormal(tables, name, key) for key in condition.key), name


def test_every_number_has_a_normal_value_within_its_range_at_any_age(tables: Tables) -> None:
    for examination in tables.examinations.values():
        for part in examination.parts.values():
            for sex in SEXES:
                for age in range(0, OLDEST + 1, 10):
                    reference = part.reference(sex, age)
                    assert reference.low < reference.mean < reference.high
                    assert 0 < reference.sd < reference.high - reference.low


def test_a_complaint_does_not_name_what_its_patients_have(tables: Tables) -> None:
    for complaint, said in tables.complaints.items():
        for condition in tables.group(complaint).values():
            for name in (condition.zh, *condition.aliases_zh):
                assert not any(name in wording for wording in said.lay), (complaint, name)


def test_a_patient_whose_every_wording_names_its_condition_is_refused() -> None:
    """The table lacks a wording; one that names the condition would give it away."""
    with pytest.raises(UsageError, match="头痛 names 偏头痛"):
        Speech(0, random.Random(0)).choose("头痛", ["偏头痛又犯了"], "seen", ["偏头痛"])


def test_a_patient_is_drawn_as_the_table_says(tables: Tables) -> None:
    condition, rng = tables.conditions["migraine"], random.Random(3)
    drawn = [draw_patient(tables, condition, rng) for _ in range(400)]
    assert drawn[0] == draw_patient(tables, condition, random.Random(3))
    assert all(18 <= int(patient["age"]) <= 50 for patient in drawn)
    assert sum(patient["sex"] == "female" for patient in drawn) / 400 == pytest.approx(
        0.75, abs=0.07
    )
    assert sum(bool(patient["photophobia"]) for patient in drawn) / 400 == pytest.approx(
        0.92, abs=0.05
    )
    assert {str(patient["place"]) for patient in drawn} == set(condition.facets["place"])
    likely = log_likelihood(tables, condition, "place", "one_side_head")
    assert likely > log_likelihood(tables, condition, "place", "whole_head")
    assert log_likelihood(tables, condition, "age", 30) > log_likelihood(
        tables, condition, "age", 90
    )


def test_a_patient_who_vomits_feels_sick(tables: Tables) -> None:
    rng = random.Random(4)
    drawn = [draw_patient(tables, one, rng) for one in tables.conditions.values() for _ in range(9)]
    vomiting = [patient for patient in drawn if patient["vomiting"]]
    assert len(vomiting) > 20
    assert all(patient["nausea"] for patient in vomiting)
