"""One row of the SQL agent's data as a frozen, checked type.

task_of({"id": "q1", "question": "...", "answer": "..."})
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from data.load import statements
from episodes.agent import AgentError, Row, Task


@dataclass(frozen=True, kw_only=True)
class SqlTask(Task):
    """A question with what is known about its answer.

    `reference` is "" when the row has no answer. `gold` holds `structured_gt` ({"columns": [...], "rows": [[...]]}) and
    `evidence` ([{table, row_id, field, quote}]) as far as the row has them, else None. `sql`: the gold statements.
    """

    gold: dict[str, Any] | None = None
    sql: tuple[str, ...] = ()


def task_of(row: Row) -> SqlTask:
    """Check a row of `data/*.parquet` and make a task of it.

    Raises:
        AgentError: a required column is missing or not text, or a gold column is not the JSON it should be.
    """
    return SqlTask(
        id=_text(row, "id"),
        question=_text(row, "question"),
        reference=_optional_text(row, "answer"),
        task_type=_optional_text(row, "task_type") or "unknown",
        difficulty=_optional_text(row, "difficulty") or "unknown",
        gold=_gold(row),
        sql=tuple(statements(row)),
    )


def _text(row: Row, column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise AgentError(f"row {row.get('id')!r}: column {column!r} is {value!r}; it must be text that is not empty")
    return value


def _optional_text(row: Row, column: str) -> str:
    value = row.get(column)
    if value is not None and not isinstance(value, str):
        raise AgentError(f"row {row.get('id')!r}: column {column!r} is {value!r}; it must be text or empty")
    return value or ""


def _gold(row: Row) -> dict[str, Any] | None:
    kinds = {"structured_gt": dict, "evidence": list}
    gold = {column: _json(row, column, kind) for column, kind in kinds.items() if row.get(column)}
    return gold or None


def _json(row: Row, column: str, kind: type) -> Any:
    try:
        value = json.loads(row[column])
    except (TypeError, ValueError) as error:
        raise AgentError(f"row {row.get('id')!r}: column {column!r} is not JSON: {error}") from None
    if not isinstance(value, kind):
        raise AgentError(
            f"row {row.get('id')!r}: column {column!r} holds a JSON {type(value).__name__}, not a {kind.__name__}"
        )
    return value
