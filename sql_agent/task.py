"""One row of the dataset as a frozen, checked type.

Task.from_row({"id": "q1", "question": "...", "answer": "..."})
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


class TaskError(ValueError):
    """A row cannot be used as a task; the message names the row, the column and the problem."""


@dataclass(frozen=True)
class Task:
    """A question with what is known about its answer.

    `answer` is "" when the row has no reference. `gold` holds `structured_gt` ({"columns": [...], "rows": [[...]]}) and
    `evidence` ([{table, row_id, field, quote}]) as far as the row has them, else None.
    """

    id: str
    question: str
    answer: str
    task_type: str
    gold: dict[str, Any] | None

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Task:
        """Check a row of `data/*.parquet` and make a task of it.

        Raises:
            TaskError: a required column is missing or not text, or a gold column is not the JSON it should be.
        """
        return cls(
            id=_text(row, "id"),
            question=_text(row, "question"),
            answer=_optional_text(row, "answer"),
            task_type=_optional_text(row, "task_type") or "unknown",
            gold=_gold(row),
        )


def _text(row: dict[str, Any], column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise TaskError(f"row {row.get('id')!r}: column {column!r} is {value!r}; it must be text that is not empty")
    return value


def _optional_text(row: dict[str, Any], column: str) -> str:
    value = row.get(column)
    if value is not None and not isinstance(value, str):
        raise TaskError(f"row {row.get('id')!r}: column {column!r} is {value!r}; it must be text or empty")
    return value or ""


def _gold(row: dict[str, Any]) -> dict[str, Any] | None:
    kinds = {"structured_gt": dict, "evidence": list}
    gold = {column: _json(row, column, kind) for column, kind in kinds.items() if row.get(column)}
    return gold or None


def _json(row: dict[str, Any], column: str, kind: type) -> Any:
    try:
        value = json.loads(row[column])
    except (TypeError, ValueError) as error:
        raise TaskError(f"row {row.get('id')!r}: column {column!r} is not JSON: {error}") from None
    if not isinstance(value, kind):
        raise TaskError(
            f"row {row.get('id')!r}: column {column!r} holds a JSON {type(value).__name__}, not a {kind.__name__}"
        )
    return value
