"""One row of the SQL agent's data as a frozen, checked type.

task_of({"id": "q1", "question": "...", "answer": "..."})
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from data.load import statements
from episodes.agent import AgentError, Row, Task

TEXTS = {"id": True, "question": True, "answer": False, "task_type": False, "difficulty": False}  # whether needed
GOLD = {"structured_gt": dict, "evidence": list}


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

    Raises AgentError: a required column is missing or not text, or a gold column is not the JSON it should be.
    """
    for column, needed in TEXTS.items():
        value = row.get(column)
        if not (isinstance(value, str) and value.strip() if needed else isinstance(value, str | None)):
            expected = "text that is not empty" if needed else "text or empty"
            raise AgentError(f"row {row.get('id')!r}: column {column!r} is {value!r}; it must be {expected}")
    return SqlTask(
        id=row["id"],
        question=row["question"],
        reference=row.get("answer") or "",
        task_type=row.get("task_type") or "unknown",
        difficulty=row.get("difficulty") or "unknown",
        gold={column: _json(row, column, kind) for column, kind in GOLD.items() if row.get(column)} or None,
        sql=tuple(statements(row)),
    )


def _json(row: Row, column: str, kind: type) -> Any:
    where = f"row {row.get('id')!r}: column {column!r}"
    try:
        value = json.loads(row[column])
    except (TypeError, ValueError) as error:
        raise AgentError(f"{where} is not JSON: {error}") from None
    if not isinstance(value, kind):
        raise AgentError(f"{where} holds a JSON {type(value).__name__}, not a {kind.__name__}")
    return value
