"""Rows become tasks; what is wrong with a row, data/load.py says (tests/data/test_load.py)."""

from __future__ import annotations

from sql_agent.agent import AGENT
from sql_agent.task import task_of


def test_every_row_of_the_dataset_is_a_task() -> None:
    for row in AGENT.rows(AGENT.splits["val"]):
        task = task_of(row)
        assert task.gold
        assert task.result == task.gold["structured_gt"]
        assert task.sql
        assert task.difficulty in ("easy", "mid", "hard")
        assert task.wording in ("seen", "unseen")
        assert task.gold["structured_gt"]["rows"] or task.task_type == "unanswerable"
