"""Rows of both kinds become tasks; what is no case is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from common.settings import ROOT
from diagnosis_agent.task import read_rows, task_of
from episodes.episode import AgentError

VALIDATION = ROOT / "data" / "diagnosis" / "val.parquet"


def reference_row(**extra: Any) -> dict[str, Any]:
    """As DiagAgent's files have it."""
    known = {
        "split": "test",
        "index": 7,
        "answer": "kidney stone",
        "question": "54M, two days of flank pain",
    }
    return {
        "data_source": "diagnose_dataset",
        "prompt": [
            {"role": "system", "content": "Diagnose."},
            {"role": "user", "content": known["question"]},
        ],
        "ability": "diagnosis",
        "reward_model": {"style": "LLM", "ground_truth": "kidney stone"},
        "extra_info": {
            **known,
            "text": "Flank pain for two days.",
            "key_exam_names": ["CT abdomen"],
            **extra,
        },
    }


def test_bundled_rows() -> None:
    for row in read_rows(VALIDATION):
        task, extra = task_of(row), row["extra_info"]
        assert (task.id, task.task_type, task.wording) == (extra["id"], task.group, "seen")
        assert list(task.results) == [one["name"] for one in extra["examinations"]]
        assert set(task.key) <= task.results.keys()
        assert task.age in range(18, 121)
        assert task.sex in ("female", "male")
        assert task.reference not in task.aliases


def test_results_have_their_reference_range() -> None:
    examinations = [
        {"name": "CRP", "results": "65 mg/L (high)", "reference_range": "0 to 10"},
        {"name": "ECG", "results": "Sinus rhythm.", "reference_range": None},
    ]
    task = task_of(reference_row(examinations=examinations) | {"id": "x"})
    assert task.results == {
        "CRP": "65 mg/L (high) (reference range: 0 to 10)",
        "ECG": "Sinus rhythm.",
    }


def test_rows_of_the_reference(tmp_path: Path) -> None:
    import pyarrow as arrow
    from pyarrow import parquet

    parquet.write_table(arrow.Table.from_pylist([reference_row()]), tmp_path / "rows.parquet")
    (row,) = read_rows(tmp_path / "rows.parquet")
    task = task_of(row)
    assert (task.id, task.question, task.text) == (
        "7",
        "54M, two days of flank pain",
        "Flank pain for two days.",
    )
    assert (task.reference, task.key, task.task_type) == (
        "kidney stone",
        ("CT abdomen",),
        "unknown",
    )
    assert (task.results, task.aliases, task.condition, task.age) == ({}, (), None, None)


@pytest.mark.parametrize("text", [None, ""])
def test_without_a_history_a_simulator_reads_the_summary(text: str | None) -> None:
    task = task_of(reference_row(text=text) | {"id": "x"})
    assert task.text == task.question


@pytest.mark.parametrize(
    "row",
    [
        reference_row() | {"reward_model": {"style": "LLM"}},
        reference_row() | {"reward_model": {"ground_truth": {"diagnosis": "x"}}},
        reference_row() | {"prompt": [{"role": "system", "content": "x"}]},
        reference_row() | {"prompt": 3},
        reference_row() | {"extra_info": None},
        reference_row(key_exam_names="CT"),
        reference_row(key_exam_names=[" "]),
        reference_row(age="old"),
        reference_row(condition="no such"),
        reference_row(examinations=[{"name": "CT"}]),
        reference_row(examinations=[{"name": "CT", "results": None}]),
    ],
)
def test_what_is_no_case_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(AgentError, match="row 'x'"):
        task_of(row | {"id": "x"})


def test_rows_of_a_jsonl_file_get_names_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(
        "".join(json.dumps(row) + "\n" for row in (reference_row(), reference_row(), {"prompt": 1}))
    )
    assert [row["id"] for row in read_rows(file)] == ["7/0", "7/1", "2"]


@pytest.mark.parametrize("name", ["none.parquet", "bad.parquet", "bad.jsonl", "empty.jsonl"])
def test_files_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no PAR1")
    (tmp_path / "bad.jsonl").write_text("{")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(AgentError, match=name):
        read_rows(tmp_path / name)
