"""A row of the code agent's data as a frozen type, for `data/code/` and MedAgentGym's sets."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from code_agent.graders import Gold, GoldError
from episodes import row_files
from episodes.agent import Row
from episodes.episode import AgentError, Task


@dataclass(frozen=True, kw_only=True)
class CodeTask(Task):
    """A question that a program answers. reference: the gold value as text.

    task_type: the template, or the set. note: the text that the question is about, or "". files:
    files of the set's folder that a program may read. gold: the typed answer, or None if another
    grader judges. program, sql: the gold program and query, or "". context: a program into which
    the policy's is put (`code_agent.actions.HERE`).
    """

    task_set: str
    note: str = ""
    files: tuple[str, ...] = ()
    gold: Gold | None = None
    program: str = ""
    sql: str = ""
    context: str = ""


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a Parquet or JSONL file. Raises AgentError: it is unreadable or empty."""
    rows = row_files.read_rows(path, "questions")
    for number, row in enumerate(rows):
        row.setdefault("id", str(number))
        row.setdefault("task_type", row.get("template") or "unknown")
    return rows


def task_of(row: Row) -> CodeTask:
    """Return the checked task of a row. Raises AgentError: a column or the gold is malformed."""
    try:
        gold = gold_of(json.loads(row["gold"]))
        return CodeTask(
            id=str(row["id"]),
            question=row["question"],
            reference=json.dumps(gold.value, ensure_ascii=False),
            task_type=row["template"],
            difficulty=row["difficulty"],
            wording=row.get("wording") or "",
            task_set=row["task_set"],
            note=row.get("note") or "",
            files=tuple(row.get("files") or ()),
            gold=gold,
            program=row.get("program") or "",
            sql=row.get("sql") or "",
        )
    except (KeyError, TypeError, ValueError) as error:
        raise AgentError(
            f"row {row.get('id')!r} is no question of the code agent ({type(error).__name__}: "
            f"{error}); expected question, task_set, template, difficulty and gold as in data/code"
        ) from None


def gold_of(stored: dict[str, Any]) -> Gold:
    """Return the gold that a row stores as JSON. Raises GoldError, or TypeError: unknown name."""
    value = stored["value"]
    if value is None:
        raise GoldError("the gold value is null")
    if isinstance(value, list):
        value = tuple(tuple(item) if isinstance(item, list) else item for item in value)
    return Gold(**stored | {"value": value, "items": tuple(stored.get("items", ()))})
