"""Rows become tasks, sets are found by name, and the validator says which gold is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from code_agent import validate
from code_agent.task import read_rows, task_of
from code_agent.tasks import get_task_class
from code_agent.tasks.base import CODING, READING
from data.parquet import CODE, write_parquet
from episodes.episode import AgentError

ROW = {
    "id": "x/1", "task_set": "ehr_demo", "template": "birth_date", "difficulty": "easy", "wording": "seen", "note": "",
    "question": "When?", "files": ["patients.csv"], "gold": '{"kind": "date", "value": "2045-03-09"}',
    "program": "print('2045-03-09')", "sql": "",
}  # fmt: skip


def test_a_row_is_a_task() -> None:
    task = task_of(ROW)
    assert (task.question, task.task_type, task.difficulty, task.wording) == (
        "When?",
        "birth_date",
        "easy",
        "seen",
    )
    assert task.gold is not None
    assert (task.gold.kind, task.reference, task.files) == (
        "date",
        '"2045-03-09"',
        ("patients.csv",),
    )


def test_the_gold_of_a_table_has_rows() -> None:
    gold = {"kind": "table", "items": ["text", "integer"], "value": [["a", 1]], "ordered": False}
    assert task_of(ROW | {"gold": json.dumps(gold)}).gold.value == (("a", 1),)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "wrong",
    [{"gold": "{"}, {"gold": '{"kind": "date"}'}, {"gold": '{"kind": "date", "value": "soon"}'}, {"gold": None},
     {"gold": '{"kind": "integer", "value": 1, "colour": 2}'}, {"gold": "[]"}],
)  # fmt: skip
def test_a_row_without_a_gold_is_refused_by_its_id(wrong: dict[str, Any]) -> None:
    with pytest.raises(AgentError, match="row 'x/1' is no question"):
        task_of(ROW | wrong)


def test_a_row_of_another_agent_is_refused() -> None:
    with pytest.raises(AgentError, match="KeyError"):
        task_of({"id": "7", "question": "?", "answer": "!"})


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "broken.parquet").write_text("no")
    for name, said in {
        "missing.parquet": "cannot be read",
        "broken.parquet": "cannot be read",
        "empty.jsonl": "no rows",
    }.items():
        with pytest.raises(AgentError, match=said):
            read_rows(tmp_path / name)


def test_jsonl_rows_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW))
    [row] = read_rows(tmp_path / "rows.jsonl")
    assert task_of(row).id == "x/1"
    assert row["task_type"] == "birth_date"


def test_the_bundled_sets_open_by_name() -> None:
    hospital, calculators = (
        get_task_class(name)(mode="val") for name in ("ehr_demo", "calculators")
    )
    assert (len(hospital), len(calculators)) == (96, 64)
    assert (hospital.actions, calculators.actions) == (READING, CODING)
    task = hospital.task(0)
    assert {f"{path.name}" for path in hospital.visible(task)} >= set(task.files)
    assert all(
        set(hospital.task(index).files) <= {path.name for path in hospital.visible(task)}
        for index in range(96)
    )
    assert not calculators.visible(calculators.task(0))
    assert (
        hospital.score(
            task, json.loads(task.reference) if task.reference.startswith('"') else task.reference
        )
        == 1.0
    )
    assert hospital.score(task, "no idea") == 0.0


def test_what_there_is_not_is_said() -> None:
    with pytest.raises(AgentError, match="there is no set 'mimic_v'; the sets are "):
        get_task_class("mimic_v")
    with pytest.raises(AgentError, match="has no mode 'valid'; it has train, val, test"):
        get_task_class("ehr_demo")(mode="valid")


def test_the_validator_passes_what_is_bundled(capsys: pytest.CaptureFixture[str]) -> None:
    assert validate.main(["ehr_demo", "--mode", "val"]) == 0
    assert validate.main(["calculators"]) == 0
    assert "val: 96 questions, 0 problems" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"program": "print('2045-03-10')"}, "the gold program gives 2045-03-10, the gold is \"2045-03-09\""),
     ({"program": "print(1 / 0)"}, "the gold program raises ZeroDivisionError: division by zero"),
     ({"sql": "SELECT dob FROM patients LIMIT 2"}, "the gold SQL gives"),
     ({"sql": "SELECT colour FROM patients"}, "the gold SQL raises OperationalError: no such column: colour")],
)  # fmt: skip
def test_the_validator_names_a_wrong_gold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: dict[str, str], said: str
) -> None:
    write_parquet([ROW | wrong], tmp_path / "test.parquet", CODE)
    assert validate.main(["ehr_demo", "--mode", "test", "--questions", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert f"x/1: {said}" in output.out
    assert "1 problems" in output.err


def test_the_validator_refuses_what_is_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert validate.main(["ehr_demo", "--questions", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err
