"""Cases drawn from the tables: no two alike, solvable by asking alone, told by no name."""

import json
import re
import tomllib
from functools import cache
from random import Random
from typing import Any

import pytest
from pyarrow import parquet

from common.settings import ROOT
from conditions.examination_results import CREATININE
from conditions.table import load_tables
from diagnosis_agent.agent import AGENT
from diagnosis_agent.task import DiagnosisTask, task_of
from recipes.calculators.formula_questions import formula_of
from recipes.doctors.bayes import posterior
from recipes.doctors.cases import main
from recipes.doctors.consultation_cases import OPEN, ROWS, new_case
from recipes.doctors.diagnosis_cases import PLAUSIBLE, SURE, WORDINGS, case_of, plausible

TABLES = load_tables()
DATA = ROOT / "data"


@pytest.mark.system
@pytest.mark.parametrize("agent", ["consultation", "diagnosis"])
def test_the_bundled_files_are_what_the_command_makes(agent, tmp_path):
    assert main([agent, "--out", str(tmp_path)]) == 0
    for split in ROWS:
        bundled = (DATA / agent / f"{split}.parquet").read_bytes()
        assert (tmp_path / f"{split}.parquet").read_bytes() == bundled


@pytest.fixture(scope="module")
def consultations():
    folder = DATA / "consultation"
    return {split: parquet.read_table(folder / f"{split}.parquet").to_pylist() for split in ROWS}


def said(row: dict[str, Any]) -> set[str]:
    """Everything the patient may say, as it is worded."""
    return {row["prompt"][0]["content"], *json.loads(row["extra_info"]["facets"]).values()}


def test_unseen_consultations_say_nothing_that_training_says(consultations):
    """But for wordings that fit a condition alone because all others name it."""
    known = set().union(*(said(row) for row in consultations["train"]))
    unseen = [row for row in consultations["test"] if row["extra_info"]["wording"] == "unseen"]
    assert len(unseen) == len(consultations["test"]) // 4
    shares = [len(said(row) & known) / len(said(row)) for row in unseen]
    assert sum(share == 0 for share in shares) >= 0.9 * len(unseen)
    assert all(row["prompt"][0]["content"] not in known for row in unseen)


def test_no_patient_says_what_its_record_denies(consultations):
    denied = {
        "sweating": "满头汗",
        "appetite_loss": "吃不下",
        "sleep_problems": "睡不着",
        "nausea": "想吐",
    }
    for row in (row for rows in consultations.values() for row in rows):
        symptoms = json.loads(row["extra_info"]["symptoms"])
        said = row["extra_info"]["facets"]
        assert not any(
            word in said and symptoms.get(name) is False for name, word in denied.items()
        )


def test_nothing_of_a_consultation_names_its_diagnosis(consultations):
    for row in (row for rows in consultations.values() for row in rows):
        condition = TABLES.conditions[row["extra_info"]["condition"]]
        told = " ".join([*said(row), row["reward_model"]["enhanced_description"]])
        assert not any(name in told for name in (condition.zh, *condition.aliases_zh))


def test_files_are_not_replaced_unasked(tmp_path, capsys):
    (tmp_path / "val.parquet").touch()
    make = ["consultation", "--out", str(tmp_path), "--rows"]
    assert main([*make, "val=2"]) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*make, "val=2", "--force"]) == main([*make, "test=2"]) == 0


@cache
def bundled(split: str) -> list[DiagnosisTask]:
    return [task_of(row) for row in AGENT.rows(DATA / "diagnosis" / f"{split}.parquet")]


@pytest.fixture(scope="module")
def drawn():
    random, seen = Random(5), set[str]()
    names = [*TABLES.conditions] * 3
    return [new_case(TABLES, name, random, seen, case_of) for name in names]


def all_tasks() -> list[DiagnosisTask]:
    return [task for split in ROWS for task in bundled(split)]


def test_a_summary_leaves_several_conditions_open(drawn):
    for case in drawn:
        chances = posterior(TABLES, TABLES.group(case.complaint), case.stated)
        assert len(plausible(chances)) >= OPEN
        assert chances[case.name] >= PLAUSIBLE


def test_key_results_settle_the_case(drawn):
    for case in drawn:
        known = case.stated | {key: case.results[key] for key in TABLES.conditions[case.name].key}
        chances = posterior(TABLES, TABLES.group(case.complaint), known)
        assert chances[case.name] >= SURE


def test_a_summary_tells_no_key_result(drawn):
    for case in drawn:
        keys = {key for one in TABLES.group(case.complaint).values() for key in one.key}
        assert not keys & case.stated.keys()
    for task in all_tasks():
        results = [task.results[name].split(" (reference")[0].rstrip(".") for name in task.key]
        assert not any(result in task.question for result in results)


def numbers(task: DiagnosisTask, name: str) -> dict[str, float]:
    found = re.findall(r"([A-Za-z ]+?) (-?[\d.]+)", task.results[name].split(" (reference")[0])
    return {part.strip(): float(number) for part, number in found}


def test_numbers_of_one_examination_agree():
    panels = 0
    for task in all_tasks():
        kidney = numbers(task, "renal function tests")
        creatinine, female = kidney["creatinine"] / CREATININE, task.sex == "female"
        expected = formula_of("gfr_ckd_epi")(creatinine, task.age, female)
        assert kidney["estimated GFR"] == round(expected)
        if "lipid panel" in task.results:
            fats = numbers(task, "lipid panel")
            whole = fats["HDL cholesterol"] + fats["LDL cholesterol"] + fats["triglycerides"] / 2.2
            assert fats["total cholesterol"] == pytest.approx(whole, abs=0.051)
            panels += 1
    assert panels > 100


def test_nothing_of_a_case_names_its_diagnosis():
    for task in all_tasks():
        told = [task.question, task.text, *task.results.values()]
        for name in (task.reference, *task.aliases):
            named = re.compile(rf"\b{re.escape(name)}\b", 0 if name.isupper() else re.IGNORECASE)
            assert not any(named.search(text) for text in told), (task.id, name)


def test_unseen_rows_are_worded_as_no_training_row_is():
    sections = tomllib.loads(WORDINGS.read_text(encoding="utf-8"))
    more = sections.pop("more")
    wordings = [text for one in (sections, more) for texts in one.values() for text in texts]
    pieces = {piece for text in wordings for piece in re.split(r"\{\w+\}", text)}
    own = [piece for piece in pieces if sum(piece in text for text in wordings) == 1]
    unseen = [task.question for task in bundled("test") if task.wording == "unseen"]
    assert len(unseen) == len(bundled("test")) // 4
    told = "\n".join(unseen)
    used = {piece for piece in own if len(piece) >= 7 and piece in told}
    assert len(used) >= 4
    training = "\n".join(task.question for task in bundled("train"))
    assert not [piece for piece in used if piece in training]
