"""Rows become tasks; what is wrong with a row, data/load.py says (tests/data/test_load.py)."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from common.command import UsageError
from sql_agent.agent import AGENT
from sql_agent.task import SqlTask, task_of


def test_every_row_of_the_dataset_is_a_task() -> None:
    for row in AGENT.rows(AGENT.splits["val"]):
        task = task_of(row)
        assert task.gold
        assert task.result == task.gold["structured_gt"]
        assert task.sql
        assert task.difficulty in ("easy", "mid", "hard")
        assert task.wording in ("seen", "unseen")
        assert task.gold["structured_gt"]["rows"] or task.task_type == "unanswerable"


def test_a_minimal_row_is_a_task_without_reference_and_frozen(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "question": "b"}\n')
    task = task_of(AGENT.rows(tmp_path / "rows.jsonl")[0])
    assert task == SqlTask(id="a", question="b", task_type="unknown")
    assert task.result is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.reference = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    "wrong", [{"question": " "}, {"answer": 3}, {"structured_gt": "[]"}, {"evidence": "{}"}]
)
def test_a_bad_row_is_refused_where_it_is_read(tmp_path: Path, wrong: dict[str, object]) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": "a", "question": "b"} | wrong) + "\n")
    with pytest.raises(UsageError, match=f"row 0, column {next(iter(wrong))}"):
        AGENT.rows(tmp_path / "rows.jsonl")
