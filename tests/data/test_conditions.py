"""The tables of conditions: what they promise, that they fit together, and that what would not is
found.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from common.command import UsageError
from data.conditions.bayes import draw_patient, log_likelihood
from data.conditions.condition_types import OLDEST, Phrase, Spread, Tables, terms
from data.conditions.speech import Speech
from data.conditions.table import FOLDER, load_tables
from tests.data.condition_tables import SEXES, faults, separability

NAMES = ("phrases", "wordings", "complaints", "examinations", "conditions")


@pytest.fixture(scope="module")
def tables() -> Tables:
    return load_tables()


def test_the_tables_are_large_enough(tables: Tables) -> None:
    assert len(tables.conditions) >= 40
    assert len({condition.department for condition in tables.conditions.values()}) >= 8
    assert len(tables.complaints) >= 9
    assert len(tables.examinations) >= 64
    assert all(4 <= len(tables.group(complaint)) <= 6 for complaint in tables.complaints)


def test_asking_tells_the_conditions_apart_and_the_complaint_alone_does_not(tables: Tables) -> None:
    for complaint in tables.complaints:
        found = separability(tables, complaint)
        assert found.alone <= 0.45, complaint
        assert found.age_and_sex < 0.75, complaint
        assert found.one_best <= 0.9, (complaint, found.best[0])
        assert found.three_best >= 0.9, (complaint, found.best)
        assert found.everything >= 0.95, complaint


def test_advice_is_a_few_items_that_can_be_known_again(tables: Tables) -> None:
    for name, condition in tables.conditions.items():
        assert 3 <= len(condition.advice_zh) <= 5, name
        assert len(condition.red_flags_zh) >= 2, name
    assert terms("see *urology* for a *urine test*") == ("urology", "urine test")


def test_only_smokers_are_advised_what_is_for_smokers(tables: Tables) -> None:
    for_smokers = [one for one in tables.conditions.values() if one.smokers_zh]
    assert for_smokers
    for condition in tables.conditions.values():
        added = [condition.smokers_zh] if condition in for_smokers else []
        assert [*condition.advice_for("smoking")] == [*condition.advice_zh, *added]
        assert condition.advice_for("none") == condition.advice_for(None) == condition.advice_zh


def test_they_fit_together(tables: Tables) -> None:
    assert list(faults(tables)) == []


def test_two_conditions_that_nothing_tells_apart_are_found(tables: Tables) -> None:
    twin = replace(
        tables.conditions["migraine"], en="a", zh="b", aliases_en=("c",), aliases_zh=("d",)
    )
    both = replace(tables, conditions={**tables.conditions, "twin": twin})
    assert (
        "headache: migraine and twin differ by less than 0.7 in every symptom and facet"
        in faults(both)
    )


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


def test_no_finding_is_drawn_below_nothing(tables: Tables) -> None:
    for name, condition in tables.conditions.items():
        for finding in condition.examinations.values():
            for part, value in finding.items():
                if isinstance(value, Spread) and part != "t_score":
                    assert value.mean >= 2.5 * value.sd, (name, part)


def phrases(tables: Tables) -> Iterator[tuple[str, Phrase]]:
    yield from tables.symptoms.items()
    for facet in tables.facets.values():
        yield from facet.values.items()


def test_a_patient_says_everything_in_short_words_of_its_own(tables: Tables) -> None:
    said = [(wording, name) for name, phrase in phrases(tables) for wording in phrase.lay]
    assert len({wording for wording, _ in said}) == len(said)
    assert [pair for pair in said if not 4 <= len(pair[0]) <= 14] == []
    assert all(len(symptom.lay) >= 3 and symptom.lay_en for symptom in tables.symptoms.values())
    assert all(
        len(value.lay) >= 2 for facet in tables.facets.values() for value in facet.values.values()
    )
    assert all(len(one.lay) >= 6 and len(one.lay_en) >= 3 for one in tables.complaints.values())


def test_a_patient_has_longer_words_for_everything(tables: Tables) -> None:
    said = [wording for _, one in phrases(tables) for wording in (*one.lay, *one.longer)]
    assert len({*said}) == len(said)
    longer = [wording for _, one in phrases(tables) for wording in one.longer]
    assert [wording for wording in longer if not 3 <= len(wording) <= 22] == []
    assert all(len(symptom.longer) >= 2 for symptom in tables.symptoms.values())
    assert all(
        len(value.longer) >= 3
        for facet in tables.facets.values()
        for value in facet.values.values()
    )


def test_a_complaint_does_not_name_what_its_patients_have(tables: Tables) -> None:
    for complaint, said in tables.complaints.items():
        for condition in tables.group(complaint).values():
            for name in (condition.zh, *condition.aliases_zh):
                assert not any(name in wording for wording in said.lay), (complaint, name)


def test_every_symptom_value_and_facet_is_used_by_a_condition(tables: Tables) -> None:
    conditions = tables.conditions.values()
    assert set(tables.symptoms) == {name for condition in conditions for name in condition.symptoms}
    for name, facet in tables.facets.items():
        used = {value for condition in conditions for value in condition.facets.get(name, {})}
        assert set(facet.values) == used | set(facet.usual), name


def test_every_file_says_that_no_professional_wrote_it_and_has_no_overlong_line() -> None:
    for name in NAMES:
        text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
        assert "without a medical professional" in text, name
        assert max(map(len, text.splitlines())) <= 200, name


def test_a_patient_whose_every_wording_names_its_condition_is_refused() -> None:
    """The table lacks a wording; one that names the condition would give it away."""
    with pytest.raises(UsageError, match="every wording of 头痛 names 偏头痛; add another"):
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


MISFITS = {
    "unknown symptom": ("conditions", "migrating_pain = 0.88", "no_such = 0.88", "appendicitis.symptoms: 'no_such'"),
    "unknown value": (
        "conditions", "facets.onset = { hours = 0.85", "facets.onset = { noon = 0.85", "facets.onset: 'noon'",
    ),
    "unknown complaint": ("conditions", '["abdominal_pain"]', '["tummy"]', "appendicitis.complaints: 'tummy'"),
    "unknown department": ("conditions", '"general_surgery"\nages', '"surgeons"\nages', "department: 'surgeons'"),
    "unknown examination": ("conditions", "abdominal_exam = {", "no_exam = {", "examinations: 'no_exam'"),
    "unknown part": ("conditions", "{ wbc = {", "{ wbx = {", "examinations.cbc: 'wbx'"),
    "unknown other": (
        "conditions", "distinguishing.cholecystitis", "distinguishing.nothing", "distinguishing: 'nothing'",
    ),
    "key without finding": ("conditions", 'key = ["abdominal_exam"', 'key = ["ecg"', "appendicitis.key: 'ecg'"),
    "sum": (
        "conditions", "facets.onset = { hours = 0.85", "facets.onset = { hours = 0.5",
        "facets.onset: the weights add up to 0.65",
    ),
    "ages turned": ("conditions", "ages = [18, 50]", "ages = [50, 18]", "appendicitis.ages: (50, 18), expected"),
    "shared name": ("conditions", '"盲肠炎"', '"胆囊炎"', "the name '胆囊炎' is already that of"),
    "no term": ("conditions", "马上去*普外科*急诊", "马上去普外科急诊", "appendicitis.advice: no *term*"),
    "weak difference": (
        "conditions", '["place", "aggravating", "migrating_pain"]', '["fever"]', "distinguishing.cholecystitis: fever",
    ),
    "text for numbers": ("conditions", "crp = { mean = 65, sd = 18 }", 'crp = { "high" = 1.0 }', "examinations.crp"),
    "unlike advice": ("conditions", '"多半需要*手术*切除阑尾"', '"*手术*", "*休息*"', "advice: not the same number"),
    "shared ask-word": ("phrases", '"耳朵响"', '"恶心"', "tinnitus: the ask-word '恶心'"),
    "shared synonym": ("examinations", '"hs-CRP"', '"cbc"', "crp: the name 'cbc' is already that of cbc"),
    "a sex without range": (
        "examinations", '{ sex = "male", low = 130, high = 175 }, ', "", "no range for a male of 0",
    ),
    "range turned": ("examinations", "low = 4.0, high = 10.0", "low = 10.0, high = 4.0", "cbc.parts.wbc.normal"),
    "small group": (
        "complaints", "[abdominal_pain]", '[tummy]\nzh = "腹"\nen = "tummy"\n[abdominal_pain]', "tummy: 0 conditions",
    ),
}  # fmt: skip
MISSHAPEN = {
    "empty list": ("conditions", 'complaints = ["abdominal_pain"]', "complaints = []", "appendicitis.complaints"),
    "weight above 1": ("conditions", "migrating_pain = 0.88", "migrating_pain = 1.2", "symptoms.migrating_pain"),
    "weight below 0": ("conditions", "migrating_pain = 0.88", "migrating_pain = -0.1", "symptoms.migrating_pain"),
    "unknown key": ("conditions", "female = 0.45\n", "female = 0.45\nmale = 0.55\n", "appendicitis.male"),
    "missing key": ("conditions", 'zh = "急性阑尾炎"\n', "", "appendicitis.zh"),
    "not text": ("phrases", 'zh = "发热"', "zh = 7", "symptoms.fever.zh"),
    "blank text": ("phrases", 'zh = "发热"', 'zh = " "', "symptoms.fever.zh"),
    "strange table": ("phrases", "[general]", "[signs]\n[general]", "signs"),
    "kind": ("examinations", 'kind = "lab"', 'kind = "blood"', "cbc.kind"),
    "no table": ("conditions", "crp = { mean = 65, sd = 18 }", "crp = { mean = 65 }", "crp.crp.Spread.sd"),
}  # fmt: skip


@pytest.fixture
def spoil(tmp_path: Path) -> Callable[[str, str, str], Path]:
    """Copy the tables and replace the first of a text in one of them."""

    def spoiled(name: str, text: str, by: str) -> Path:
        for other in NAMES:
            shutil.copy(FOLDER / f"{other}.toml", tmp_path)
        path = tmp_path / f"{name}.toml"
        content = path.read_text(encoding="utf-8")
        assert text in content, "the case no longer meets the table"
        path.write_text(content.replace(text, by, 1), encoding="utf-8")
        return tmp_path

    return spoiled


@pytest.mark.parametrize("case", MISFITS)
def test_what_does_not_fit_is_found(case: str, spoil: Callable[[str, str, str], Path]) -> None:
    name, text, by, expected = MISFITS[case]
    assert expected in next(faults(load_tables(spoil(name, text, by))))


@pytest.mark.parametrize("case", MISSHAPEN)
def test_a_misshapen_table_is_refused(case: str, spoil: Callable[[str, str, str], Path]) -> None:
    name, text, by, expected = MISSHAPEN[case]
    with pytest.raises(ValidationError, match=expected):
        load_tables(spoil(name, text, by))
