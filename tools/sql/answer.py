"""What one statement of the model gives: the guard, the database, and the text, in that order.

`answer` runs in a worker process (tools/sql/worker.py), which can be ended whatever it does.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

from tools.sql.database import Access, Database, DeadlineExceeded, StatementError
from tools.sql.guard import Refused, check
from tools.sql.hints import hint_for_empty, hint_for_error, hint_for_refusal
from tools.sql.result import Limits, QueryResult, failure, fit


class Question(NamedTuple):
    """A statement as the model wrote it, the database it is for, and what it may read.

    hints: whether errors and empty results come with help for the model.
    """

    url: str
    allowed_tables: frozenset[str]
    limits: Limits
    hints: bool
    sql: str


class Answer(NamedTuple):
    """The result, and whether the same SQL would give it again: a slow machine is not the statement's property."""

    result: QueryResult
    repeatable: bool


def answer(database: Database, question: Question) -> Answer:
    """Run one SELECT and shape its result. Raises DatabaseError: the database failed, whoever's fault that was."""
    end = time.monotonic() + question.limits.deadline
    tables = question.allowed_tables
    try:
        statement = check(question.sql, database.dialect, tables, database.schema)
    except Refused as refusal:
        hint = hint_for_refusal(refusal, database, tables) if question.hints else ""
        return Answer(replace(failure(str(refusal)), hint=hint), True)
    try:
        access = Access(tables, statement.own_names, statement.tables)
        left = max(0.0, end - time.monotonic())
        found = database.read(statement.sql, access, left, question.limits.max_rows)
    except DeadlineExceeded:
        return Answer(failure(f"查询超过 {question.limits.deadline:g} 秒，已停止。请增加条件或减少连接。"), False)
    except StatementError as error:
        hint = hint_for_error(str(error), statement, database, tables) if question.hints else ""
        return Answer(replace(failure(f"数据库报错：{error}"), hint=hint), True)
    result = fit(found, question.limits)
    if result.count or not question.hints:
        return Answer(result, True)
    near = hint_for_empty(statement, database, end)
    return Answer(replace(result, hint=near or ""), near is not None)
