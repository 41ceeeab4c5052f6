"""Records and configurations as `evaluation.evaluate` writes them, for tests that start from a
finished evaluation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluation.results import write_results
from sql_agent.agent import AGENT

CONFIG: dict[str, Any] = {
    "agent": "sql",
    "model": "m",
    "kind": "endpoint",
    "data": {"file": "d.parquet", "sha256": "0" * 64, "questions": 2},
    "k": 1,
    "seed": 0,
    "sampling": {"temperature": 1.0, "top_p": 1.0, "max_tokens": 9},
    "max_turns": 3,
    "prompt_version": "1",
    "judge": "reference",
}


def record(name: str = "q1", score: float | None = 1.0, **changes: Any) -> dict[str, Any]:
    """The record of one episode as `evaluation.results.recorded` makes it of the SQL agent's: no
    query, one turn.
    """
    plain = {
        "id": name,
        "sample": 0,
        "task_type": "drug_field",
        "difficulty": "easy",
        "wording": "",
        "question": f"question {name}",
        "reference": "r",
        "answer": f"answer | {score}",
        "stop_reason": "answered",
        "score": score,
        "unscored": None if score is not None else "judge_failed",
        "terms": {"rule": 0.1},
        "measures": {},
        "facts": {"execution_accuracy": None, "evidence_recall": None, "queried": 0.0},
        "checks": {},
        "unanswerable": False,
        "abstained": False,
        "queries": [],
        "turns": 2,
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "seconds": 1.0,
    }
    return plain | changes


def evaluation(folder: Path, records: list[dict[str, Any]], **config: Any) -> Path:
    """A finished evaluation in a new folder."""
    folder.mkdir(parents=True)
    write_results(AGENT, folder, CONFIG | config, records)
    return folder
