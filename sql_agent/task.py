"""One row of the SQL agent's data as a frozen type."""

from dataclasses import dataclass
from typing import Any

from episodes.agent import Row
from episodes.episode import Task
from sql_agent.intake.question_files import nested, statements


@dataclass(frozen=True, kw_only=True)
class SqlTask(Task):
    """A question with what is known about its answer.

    reference: "" if the row has no answer. gold: `structured_gt` ({"columns": [...], "rows":
    [[...]]}) and `evidence` ([{table, row_id, field, quote}]), or None. sql: the gold statements.
    names: the entities it is about, the one asked for first.
    """

    gold: dict[str, Any] | None = None
    sql: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def result(self) -> dict[str, Any] | None:
        """The gold result set, `structured_gt`."""
        return (self.gold or {}).get("structured_gt")


def task_of(row: Row) -> SqlTask:
    """Return the task of a row of `sql_agent.intake.question_files.load_rows`."""
    gold = {name: nested(row, name) for name in ("structured_gt", "evidence") if row[name]}
    return SqlTask(
        id=row["id"],
        question=row["question"],
        reference=row["answer"],
        task_type=row["task_type"] or "unknown",
        difficulty=row["difficulty"] or "unknown",
        wording=row["wording"],
        gold=gold or None,
        sql=tuple(statements(row)),
        names=tuple(nested(row, "entities")),
    )


def own(task: Task) -> SqlTask:
    """Return the task as the SQL agent's."""
    assert isinstance(task, SqlTask)
    return task
