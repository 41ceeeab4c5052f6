"""Rows become tasks, or one clear message."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.settings import ROOT
from data.load import load_rows
from sql_agent.task import Task, TaskError


def test_every_row_of_the_dataset_is_a_task() -> None:
    for row in load_rows(ROOT / "data" / "val.parquet"):
        task = Task.from_row(row)
        assert task.gold
        assert task.gold["structured_gt"]["rows"] or task.task_type == "unanswerable"


def test_a_minimal_row_is_a_task_without_reference() -> None:
    assert Task.from_row({"id": "a", "question": "b"}) == Task("a", "b", "", "unknown", None)


def test_a_task_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Task.from_row({"id": "a", "question": "b"}).answer = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"question": "b"}, "'id'"),
        ({"id": "a"}, "'question'"),
        ({"id": "a", "question": " "}, "'question'"),
        ({"id": "a", "question": "b", "answer": 3}, "'answer'"),
        ({"id": "a", "question": "b", "structured_gt": "{"}, "'structured_gt'"),
        ({"id": "a", "question": "b", "structured_gt": "[]"}, "'structured_gt'"),
        ({"id": "a", "question": "b", "evidence": "{}"}, "'evidence'"),
    ],
)
def test_a_bad_row_is_named(row: dict[str, Any], named: str) -> None:
    with pytest.raises(TaskError, match=named):
        Task.from_row(row)


VALUES = st.none() | st.integers() | st.text() | st.lists(st.text())
COLUMNS = st.sampled_from(["id", "question", "answer", "task_type", "structured_gt", "evidence", "other"])


@given(st.dictionaries(COLUMNS, VALUES))
def test_any_row_is_a_task_or_a_task_error(row: dict[str, Any]) -> None:
    usable = all(isinstance(row.get(name), str) and row[name].strip() for name in ("id", "question"))
    try:
        task = Task.from_row(row)
    except TaskError:
        return
    assert usable
    assert task.question == row["question"]
    json.dumps(task.gold)
