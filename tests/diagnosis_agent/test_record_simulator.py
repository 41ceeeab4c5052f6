"""An order finds the case's own result by any name; without one it is normal, or not available."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conditions.orders import named, panels
from conditions.table import load_tables
from diagnosis_agent.agent import AGENT
from diagnosis_agent.record_simulator import RecordSimulator, Result
from diagnosis_agent.task import task_of
from episodes.episode import AgentError
from recipes.doctors.results import read_result
from tests.corpora import cases_of
from tests.diagnosis_agent.cases import reference_row, task_with, tasks

TASK = task_with("appendicitis")
MALE = next(task for task in tasks() if task.sex == "male")
FEMALE = next(task for task in tasks() if task.sex == "female")


def result(name: str, *past: Result) -> Result:
    return RecordSimulator().reply_to(TASK, name, past)


def test_the_record_answers_and_a_panel_gives_its_parts():
    found = result("CBC")
    assert (found.kind, found.text) == ("recorded", TASK.results["complete blood count"])
    assert all(part.en in found.text for part in load_tables().examinations["cbc"].parts.values())


def test_what_is_not_recorded_is_normal_for_age_and_sex_and_always_alike():
    assert TASK.sex is not None
    assert TASK.age is not None
    for key, one in load_tables().examinations.items():
        if one.en in TASK.results or one.only != "any":
            continue
        found = result(one.en)
        assert (found, found.kind) == (result(one.en), "normal")
        read = read_result(load_tables(), key, found.text, TASK.sex, TASK.age)
        for part, value in read.numbers.items():
            assert read.range_of(part).low <= value <= read.range_of(part).high


def test_a_panel_is_the_results_of_its_parts():
    found = result("BMP")
    assert (found.name, found.kind) == ("basic metabolic panel", "recorded")
    for name in panels()["basic metabolic panel"]:
        part = result(name)
        assert part.kind == "not_recorded" or f"{name}: {part.text}" in found.text


def test_what_the_patient_cannot_have_is_not_available():
    simulator = RecordSimulator()
    assert simulator.reply_to(FEMALE, "prostate ultrasound", []).kind == "unavailable"
    for task in (MALE, replace(MALE, sex=None)):
        assert simulator.reply_to(task, "prostate ultrasound", []).kind in ("recorded", "normal")


def test_an_examination_that_settles_a_case_is_never_invented():
    bare = replace(TASK, results={})
    kinds = {RecordSimulator().reply_to(bare, name, []).kind for name in TASK.key}
    assert kinds == {"not_recorded"}


def test_a_file_whose_rows_record_nothing_is_refused_and_a_poor_one_is_named():
    bare = task_of(reference_row())
    rich = replace(bare, results={"CT Abdomen": "A stone."})
    with pytest.raises(AgentError, match="--simulator llm"):
        AGENT.check_recorded([bare, bare])
    assert ["2 of 3 cases" in note for note in AGENT.check_recorded([bare, rich, TASK])] == [True]
    assert AGENT.check_recorded(tasks()) == []


@given(st.text())
def test_any_order_is_answered(order):
    assert result(order).kind in ("recorded", "normal", "not_recorded", "unavailable")


@pytest.mark.parametrize(
    "case", cases_of(__file__, "corpus/records"), ids=lambda case: case["asked"][0][0]
)
def test_an_order_is_answered_from_the_names_of_the_record(case):
    """Sides are kept apart, and a panel or an examination has all its recorded parts."""
    task = replace(task_of(reference_row()), results=case["results"], key=tuple(case["key"]))
    missed = list[Result]()  # what is not recorded hides nothing that is
    for order, kind, text in case["asked"]:
        found = RecordSimulator().reply_to(task, order, missed)
        missed += [found] if found.kind == "not_recorded" else []
        assert (found.kind, found.text) == (kind, text), order


def test_a_part_of_another_examination_is_shown_with_it():
    """The glucose of a cerebrospinal fluid would be taken for a blood sugar."""
    of_fluid = {"CSF Analysis": "Glucose: 20 mg/dL", "Glucose": "20 mg/dL"}
    task = replace(task_of(reference_row()), results=of_fluid)
    found = RecordSimulator().reply_to(task, "glucose", [])
    assert "CSF Analysis" in found.shown
    assert "CSF Analysis" in RecordSimulator().reply_to(task, "glucose", [found]).shown


def test_times_of_results_are_not_looked_up_as_names():
    times = {"Anion Gap": "".join(f"2150-01-{day}: 7.5\n" for day in range(10, 31))}
    named.cache_clear()
    RecordSimulator().reply_to(replace(TASK, condition=None, results=times), "lipase", [])
    assert named.cache_info().misses < 20
    dated = replace(TASK, condition=None, results={"Blood": "Ca 2150-01-10 9 mg/dL, Na 140"})
    assert RecordSimulator().reply_to(dated, "magnesium", []).kind == "not_recorded"
