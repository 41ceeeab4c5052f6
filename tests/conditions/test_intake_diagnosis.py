"""DiagGym's and DiagAgent's files become rows; what cannot is named and left out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from conditions.intake.diagnosis import main
from diagnosis_agent.agent import AGENT
from diagnosis_agent.task import task_of
from tests.messages import missing

COLUMNS = {"data_source", "prompt", "ability", "reward_model", "extra_info"}
EXTRA = {"split", "index", "answer", "question", "text", "key_exam_names", "examinations"}


def note(number: int) -> dict[str, Any]:
    text = f"Patient {number}, pain in the flank since Monday.\n\nPhysical Exam:\nTender. Kidney stone seen."
    events = [{"time": "08:00", "data": {"label": "Creatinine", "lab_data": f"{number} mg/dL"}}]
    examined = [{"exam_name": "Abdomen", "exam_results": "Tender."}]
    told = {"text": text, "discharge_diagnosis": "kidney stone", "events": events}
    return {**told, "reformat_physical_exam": examined}


def case(number: int, **other: Any) -> dict[str, Any]:
    known = {"case_summary": f"Flank pain, patient {number}.", "final_diagnosis": "kidney stone"}
    exams = {"recommended_exam_names": ["CT abdomen", "Urinalysis"], "timeline": [{"step": 1}]}
    return {**known, **exams, **other}


def written(folder: Path, **contents: Any) -> list[str]:
    """Return the arguments for three files of JSON values or texts, of two records by default."""
    cases = {f"n{number}": case(number) for number in range(2)}
    notes = {f"n{number}": note(number) for number in range(2)}
    usual = {"notes": notes, "train": cases, "test": cases}
    for name, content in (usual | contents).items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    words = ["--local_dir", str(folder / "out")]
    named = {"diaggym_ref": "notes", "diagagent_train": "train", "diagagent_test": "test"}
    for flag, name in named.items():
        words += [f"--{flag}_data_path", f"{folder}/{name}.json"]
    return words


Run = Callable[..., int]


@pytest.fixture
def run(tmp_path):
    return lambda *flags, **contents: main([*written(tmp_path, **contents), *flags])


def rows_of(tmp_path: Path, split: str) -> list[dict[str, Any]]:
    return list(parquet.read_table(tmp_path / "out" / f"{split}.parquet").to_pylist())


def test_rows_have_the_columns_of_the_reference_and_are_tasks(run, tmp_path):
    assert run() == 0
    for split in ("train", "test"):
        rows = rows_of(tmp_path, split)
        assert [row["extra_info"]["index"] for row in rows] == [0, 1]
        assert all(row.keys() == COLUMNS and row["extra_info"].keys() == EXTRA for row in rows)
        assert {row["extra_info"]["split"] for row in rows} == {split}
    task = task_of(AGENT.rows(tmp_path / "out" / "test.parquet")[1])
    assert (task.question, task.reference) == ("Flank pain, patient 1.", "kidney stone")
    assert task.text == "Patient 1, pain in the flank since Monday."
    assert task.key == ("CT abdomen", "Urinalysis")
    assert task.results == {"Abdomen": "Tender.", "Creatinine": "08:00: 1 mg/dL"}


def test_results_of_one_examination_stand_together_with_their_times(run, tmp_path):
    measured = {"label": "Creatinine", "lab_data": {"value": 2, "unit": "mg/dL"}}
    event = {"time": "09:30", "data": [measured]}
    notes = {f"n{number}": note(number) for number in range(2)}
    notes["n1"]["events"].append(event)
    notes["n0"] |= {"events": None, "reformat_physical_exam": None}
    assert run(notes=notes) == 0
    bare, full = (row["extra_info"]["examinations"] for row in rows_of(tmp_path, "test"))
    assert bare == []
    assert full[1]["results"].splitlines() == ["08:00: 1 mg/dL", "09:30: value: 2", "unit: mg/dL"]


def test_what_was_not_measured_is_left_out_alone(run, tmp_path, capsys):
    notes = {f"n{number}": note(number) for number in range(2)}
    values = ["9", None, "", {}, {"value": 2, "unit": None}]
    notes["n0"]["events"] = [{"data": {"label": "CBC", "lab_data": one}} for one in values]
    notes["n1"]["events"] = [{"data": {"lab_data": "9"}}]
    assert run(notes=notes, train={"n0": case(0), "again": 3}) == 0
    (row,) = rows_of(tmp_path, "test")
    assert row["extra_info"]["examinations"][1] == {"name": "CBC", "results": "9\nvalue: 2"}
    line = next(line for line in capsys.readouterr().err.splitlines() if "test.json, n1" in line)
    assert "label" in line


LEFT_OUT = {
    "no object": (3, "the record is 3"),
    "no summary": (case(0, case_summary=" "), "case_summary is ' '"),
    "no diagnosis": (case(0, final_diagnosis=None), "final_diagnosis is None"),
    "no examination": (case(0, recommended_exam_names=[]), "recommended_exam_names"),
    "no note": (case(0), "no note"),
}


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_what_is_left_out_is_named(run, tmp_path, capsys, kind):
    record, reason = LEFT_OUT[kind]
    assert run(train={"n0": case(0), "n1": case(1), "odd": record}) == 0
    said = capsys.readouterr().err.splitlines()
    counts = ("train.json", "2 cases", "1 records", "0 record no")
    assert any(not missing(line, *counts) for line in said)
    line = next(line for line in said if "odd" in line)
    assert line.startswith(f"{tmp_path}/train.json, odd: ")
    assert reason in line
    assert len(rows_of(tmp_path, "train")) == 2


def test_notes_without_a_history_or_twice_are_named(run, capsys):
    notes = [note(number) | {"note_id": f"n{number}"} for number in (0, 1, 1)]
    assert run(notes=[*notes, {"note_id": "n2", "text": "Physical Exam: tender"}]) == 0
    said = capsys.readouterr().err
    assert not missing(said, "n1: ", "twice", "n2: text before Physical Exam")


def test_cases_of_both_files_are_counted(run, capsys):
    assert run(test={"n1": case(1)}) == 0
    assert not missing(capsys.readouterr().err, "1 cases to evaluate on", "trained on", "n1")


def test_nothing_is_written_where_most_is_left_out(run, tmp_path):
    assert run(test={"n0": case(0), "n1": 1, "n2": 2}) == 1
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("text", ["", '"x"', "[" * 5000])
def test_files_that_are_no_records(run, tmp_path, capsys, text):
    assert run(test=text) == 2
    said = capsys.readouterr().err.splitlines()
    assert "test.json" in said[-1]
    assert list((tmp_path / "out").iterdir()) == []


def test_files_are_replaced_on_demand_alone(run, capsys):
    assert run() == 0
    assert run() == 2
    assert "--force" in capsys.readouterr().err
    assert run("--force") == 0


def test_the_flags_of_the_reference(run, tmp_path, capsys):
    assert run(f"--diaagent_test_data_path={tmp_path}/train.json") == 0
    assert run("--hdfs_dir", "hdfs://x") == 2
    assert "--local_dir" in capsys.readouterr().err
    assert run("--diaggym_ref_data_path", str(tmp_path / "none.json")) == 2
    assert "none.json" in capsys.readouterr().err
