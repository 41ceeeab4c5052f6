"""Records and configurations as `evaluation.evaluate` writes them, for tests that start from a finished evaluation."""

from __future__ import annotations

from typing import Any


def config(**changes: Any) -> dict[str, Any]:
    """The configuration of an evaluation."""
    plain = {
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
    return plain | changes


def record(name: str, score: float | None, **changes: Any) -> dict[str, Any]:
    """The record of one episode as `evaluation.jobs.record_of` makes it: no query, one turn."""
    plain = {
        "id": name,
        "sample": 0,
        "task_type": "t",
        "difficulty": "easy",
        "question": f"question {name}",
        "reference": "r",
        "answer": "a",
        "stop_reason": "answered",
        "score": score,
        "unscored": None if score is not None else "timeout",
        "terms": {},
        "measures": {},
        "checks": {},
        "execution_match": None,
        "evidence_recall": None,
        "unanswerable": False,
        "abstained": False,
        "queries": [],
        "turns": 1,
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "seconds": 0.1,
    }
    return plain | changes
