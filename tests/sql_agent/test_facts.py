"""What the SQL agent says of its episodes beyond the reward: ratios over records, and the kind of
each failure.
"""

from __future__ import annotations

from typing import Any

import pytest

from sql_agent.agent import AGENT

RAN, FAILED = {"ok": True}, {"ok": False}


def record(
    score: float = 0.0, *queries: dict[str, Any], execution: float | None = None, **changes: Any
) -> Any:
    plain = {"score": score, "stop_reason": "answered", "unanswerable": False, "abstained": False}
    return plain | {"queries": list(queries), "facts": {"execution_accuracy": execution}} | changes


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("right", record(0.9, RAN, execution=0.0)),
        ("right", record(1.0)),
        ("no_query", record(0.4)),
        ("failed_query", record(0.0, FAILED)),
        ("wrong_query", record(0.5, FAILED, RAN, execution=0.0)),
        ("wrong_answer", record(0.5, RAN, execution=1.0)),
        ("wrong_answer", record(0.0, RAN)),
        ("no_answer", record(0.0, RAN, execution=1.0, stop_reason="no_answer")),
        ("unfinished", record(0.0, RAN, execution=0.0, stop_reason="length")),
        ("unfinished", record(stop_reason="max_turns")),
    ],
)
def test_an_episode_has_the_kind_the_page_defines(kind: str, found: dict[str, Any]) -> None:
    assert AGENT.showing.failure(found) == kind


def test_abstention_precision_and_recall() -> None:
    records = [
        record(unanswerable=True, abstained=True),
        record(unanswerable=True),
        record(unanswerable=True),
        record(abstained=True),
    ]
    found = AGENT.showing.summarise(records)["abstention"]
    assert found == {"precision": 1 / 2, "recall": 1 / 3, "abstained": 2, "unanswerable": 3}
