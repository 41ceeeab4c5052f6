"""The published statements of EHRSQL go through the guard; a file that is none is one clear line.

The rows are written for these tests, in the published form.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sql_agent.guard_corpus import main
from tests.messages import missing

COUNT = "select count(*)>0 from visits where strftime('%y-%m',visits.charttime) >= '2102-10'"
ROWS = [
    {"question": "Any visit?", "query": COUNT, "is_impossible": False},
    {"question": "Any visit at all?", "query": COUNT, "is_impossible": False},
    {"question": "Who is on duty?", "query": "null", "is_impossible": True},
]
SCHEMA = "DROP TABLE IF EXISTS VISITS;\nCREATE TABLE VISITS\n(\n  WARD INT NOT NULL\n);"


def run(folder: Path, questions: Any) -> int:
    (folder / "valid.json").write_text(json.dumps(questions), encoding="utf-8")
    (folder / "schema.sql").write_text(SCHEMA, encoding="utf-8")
    asked = {"data": [{"id": name, "question": f"{name}?"} for name in "abc"]}
    (folder / "data.json").write_text(json.dumps(asked), encoding="utf-8")
    return main([str(folder / "valid.json"), "--schema", str(folder / "schema.sql")])


@pytest.mark.parametrize(
    "questions",
    [ROWS, {"a": COUNT, "b": COUNT, "c": "null"}],
    ids=["EHRSQL", "EHRSQL-2024"],
)
def test_counts_of_a_file(questions, tmp_path, capsys):
    assert run(tmp_path, questions) == 0
    said = capsys.readouterr().out
    assert not missing(said, "3 questions", "1 without", "1 different", "0 refused")


def test_a_refused_statement_is_named(tmp_path, capsys):
    bad = {"question": "?", "query": "select load_extension('x') from visits"}
    assert run(tmp_path, [*ROWS, bad]) == 1
    out = capsys.readouterr().out
    assert not missing(out, "2 different", "1 refused", "load_extension('x')")
