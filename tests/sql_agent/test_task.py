"""Rows become tasks, or one clear message."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodes.agent import AgentError
from sql_agent.agent import AGENT
from sql_agent.task import SqlTask, task_of


def test_every_row_of_the_dataset_is_a_task() -> None:
    for row in AGENT.rows(AGENT.splits["val"]):
        task = task_of(row)
        assert task.gold
        assert task.sql
        assert task.difficulty in ("easy", "mid", "hard")
        assert task.gold["structured_gt"]["rows"] or task.task_type == "unanswerable"


def test_a_minimal_row_is_a_task_without_reference() -> None:
    assert task_of({"id": "a", "question": "b"}) == SqlTask(id="a", question="b", task_type="unknown")


def test_a_task_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        task_of({"id": "a", "question": "b"}).reference = "x"  # type: ignore[misc]


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
    with pytest.raises(AgentError, match=named):
        task_of(row)


VALUES = st.none() | st.integers() | st.text() | st.lists(st.text())
COLUMNS = st.sampled_from(["id", "question", "answer", "task_type", "structured_gt", "evidence", "other"])


@given(st.dictionaries(COLUMNS, VALUES))
def test_any_row_is_a_task_or_one_clear_error(row: dict[str, Any]) -> None:
    usable = all(isinstance(row.get(name), str) and row[name].strip() for name in ("id", "question"))
    try:
        task = task_of(row)
    except AgentError:
        return
    assert usable
    assert task.question == row["question"]
    json.dumps(task.gold)
