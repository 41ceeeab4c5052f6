"""Rows of both kinds become tasks; what is no case is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from diagnosis_agent.task import read_rows, task_of
from episodes.episode import AgentError
from tests.diagnosis_agent.cases import reference_row


def row_with(**extra: Any) -> dict[str, Any]:
    """A row of DiagAgent's kind with these fields of `extra_info` besides."""
    row = reference_row()
    return row | {"extra_info": row["extra_info"] | extra}


def test_results_have_their_reference_range() -> None:
    examinations = [
        {"name": "CRP", "results": "65 mg/L (high)", "reference_range": "0 to 10"},
        {"name": "ECG", "results": "Sinus rhythm.", "reference_range": None},
    ]
    task = task_of(row_with(examinations=examinations))
    assert task.results == {
        "CRP": "65 mg/L (high) (reference range: 0 to 10)",
        "ECG": "Sinus rhythm.",
    }


def test_rows_of_the_reference(tmp_path: Path) -> None:
    import pyarrow as arrow
    from pyarrow import parquet

    told = row_with(text="Flank pain for two days.")
    parquet.write_table(arrow.Table.from_pylist([told]), tmp_path / "rows.parquet")
    (row,) = read_rows(tmp_path / "rows.parquet")
    task = task_of(row)
    assert (task.id, task.question) == ("r1", "54M, two days of flank pain")
    assert task.text == "Flank pain for two days."
    assert (task.reference, task.key[0]) == ("kidney stone", "CT Abdomen")
    assert (task.results, task.aliases, task.condition, task.age) == ({}, (), None, None)


@pytest.mark.parametrize(
    "row",
    [
        reference_row() | {"reward_model": {"style": "LLM"}},
        reference_row() | {"reward_model": {"ground_truth": {"diagnosis": "x"}}},
        reference_row() | {"prompt": [{"role": "system", "content": "x"}]},
        reference_row() | {"prompt": 3},
        reference_row() | {"extra_info": None},
        row_with(key_exam_names="CT"),
        row_with(key_exam_names=[" "]),
        row_with(age="old"),
        row_with(condition="no such"),
        row_with(examinations=[{"name": "CT"}]),
        row_with(examinations=[{"name": "CT", "results": None}]),
    ],
)
def test_what_is_no_case_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(AgentError, match="row 'r1'"):
        task_of(row)


def test_rows_of_a_jsonl_file_get_names_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    nameless = {key: value for key, value in reference_row().items() if key != "id"}
    file.write_text("".join(json.dumps(row) + "\n" for row in (nameless, nameless, {"prompt": 1})))
    assert [row["id"] for row in read_rows(file)] == ["0/0", "0/1", "2"]


@pytest.mark.parametrize("name", ["none.parquet", "bad.parquet", "bad.jsonl", "empty.jsonl"])
def test_files_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no PAR1")
    (tmp_path / "bad.jsonl").write_text("{")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(AgentError, match=name):
        read_rows(tmp_path / name)
