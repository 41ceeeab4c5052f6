"""The SQL tools of agents: SQL text in, a bounded result or a helpful error out.

tool = QueryTool("sqlite:////data/medical.db")
tool.run("SELECT indication FROM drugs_info WHERE med_name = '...'").to_json()
tool.describe_table("drugs_info")                       # JSON text
"""

import logging
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from common.settings import load_settings
from tools.sql import errors
from tools.sql.database import Database, open_database
from tools.sql.guard import MAX_SQL_BYTES, Refused, check
from tools.sql.hints import hint_for_empty, hint_for_error, hint_for_refusal, hint_for_spelling
from tools.sql.pool import POOL, Overrun
from tools.sql.result import Limits, QueryResult, compact, failure, fit, neutralise, shorten
from tools.sql.scopes import fold
from tools.sql.settings import DatabaseSettings

LOG = logging.getLogger(__name__)

DEFAULT_TABLES = ("drugs_info", "disease")
DEFAULT_LIMITS = Limits()
LONGEST = MAX_SQL_BYTES + 1  # characters that are looked at at most

TRIES = 3  # of a statement, where the machine was slow
CONTROL_SECONDS = 0.2  # for a trivial query of ours, on a new connection
UNSUPPORTED = "工具不支持这种写法，请换一种等价的写法。"
TOO_EXPENSIVE = "查询太费时间或内存，已停止。请增加条件，减少连接、嵌套或文本。"

# Results of identical SQL, which the rollouts of a GRPO group often ask. Threads and forks share it
# without a lock, because no step of a dict can be interrupted.
RESULTS: dict[Hashable, QueryResult] = {}
MOST_RESULTS = 2_000  # then it begins anew


class Answer(NamedTuple):
    """A worker's result. repeatable: the same SQL gives it again. overran: the deadline was over.

    doubtful: tables of a statement that the database refused, which may have changed.
    """

    result: QueryResult
    repeatable: bool = True
    overran: bool = False
    doubtful: frozenset[str] = frozenset()


class QueryTool:
    """Runs the model's SQL on one database. Safe to share between threads, to fork and to pickle.

    database_url: SQLAlchemy URL of an SQLite file, PostgreSQL, MySQL or MariaDB. allowed_tables:
    tables, and on servers views, that may be read. limits: bounds of one call. cache: keep results
    of identical SQL. hints: help with errors and empty results, which takes longer than most
    statements. excess: the account's rights beyond reading, known once it was opened.
    """

    def __init__(
        self,
        database_url: str,
        allowed_tables: Iterable[str] = DEFAULT_TABLES,
        limits: Limits = DEFAULT_LIMITS,
        cache: bool = True,
        hints: bool = True,
    ) -> None:
        self.database_url = database_url
        self.allowed_tables = frozenset(map(fold, allowed_tables))
        self.limits = limits
        self.cache = cache
        self.hints = hints
        self.excess = ""

    def run(self, sql: str) -> QueryResult:
        """Run one SELECT. Mistakes have the status "error". Raises DatabaseError."""
        database = self.database()
        if not self.cache:
            return self._ask(database, sql)[0]
        asked = (self.database_url, self.allowed_tables, self.limits, self.hints)
        key = (*asked, database.version(), sql)
        result = RESULTS.get(key)
        if result is None:
            result, repeatable = self._ask(database, sql)
            if repeatable:
                if len(RESULTS) >= MOST_RESULTS:
                    RESULTS.clear()
                RESULTS[key] = result
        return result

    def database(self) -> Database:
        """Return the open database. Raises DatabaseError: it is unusable or may do too much."""
        database = open_database(self.database_url)
        database.check_tables(self.allowed_tables)
        self.excess = excess_of(database, self.allowed_tables)
        return database

    def _ask(self, database: Database, sql: str) -> tuple[QueryResult, bool]:
        """Return a worker's answer, and whether the same SQL would give it again.

        A statement that ended its worker, or overran on a server, is asked again if the machine was
        slow, and is otherwise too expensive. Raises MachineTooSlow if the machine was slow each
        time.
        """
        for _ in range(TRIES):
            try:
                answer = POOL.ask(database.url, self, sql[:LONGEST])
            except Overrun as overrun:
                why = str(overrun) or self._machines_fault(database)
                database.prove(self.allowed_tables)
                if not why:
                    return failure(TOO_EXPENSIVE), False
            else:
                for table in sorted(answer.doubtful):
                    database.open_table(table)
                if not answer.overran:
                    return answer.result, answer.repeatable
                why = self._machines_fault(database)
                if not why:
                    return answer.result, False
            LOG.warning("a statement is asked again, the machine was slow: %s", why)
        raise errors.MachineTooSlow(f"{TRIES} tries of a statement on {database.label}: {why}")

    def _machines_fault(self, database: Database) -> str:
        """Return the evidence that the machine is slow after a statement overran, or ""."""
        if database.clock is not time.monotonic:
            return ""  # it was the statement's own processor time
        start = time.monotonic()
        database.prove(self.allowed_tables)
        control = time.monotonic() - start
        slow = control > CONTROL_SECONDS * max(1, len(self.allowed_tables))
        return f"a control query beside it took {control:.2f} s, too" if slow else ""

    def answer(self, database: Database, sql: str) -> Answer:
        """Return the result of a statement, in a worker. Raises DatabaseError."""
        end = database.clock() + self.limits.deadline
        try:
            statement = check(sql, database.dialect, self.allowed_tables, database.schema)
        except Refused as refusal:
            near = self._hint(hint_for_refusal, refusal, database, self.allowed_tables)
            return Answer(self._failed(str(refusal), near, database, sql))
        try:
            read = statement._replace(kept=max(statement.kept, self.limits.max_cell))
            rows = database.read(read, end - database.clock(), self.limits.max_rows)
        except errors.DeadlineExceeded:
            text = f"查询超过 {self.limits.deadline:g} 秒，已停止。请增加条件或减少连接。"
            return Answer(failure(text), repeatable=False, overran=True)
        except errors.GuardFault as fault:
            LOG.warning("the guard wrote %r as %r: %s", sql, statement.sql, fault)
            return Answer(self._failed(UNSUPPORTED, "", database, sql))
        except errors.StatementError as error:
            near = self._hint(hint_for_error, str(error), statement, database, self.allowed_tables)
            failed = self._failed(f"数据库报错：{error}", near, database, sql)
            return Answer(failed, doubtful=statement.tables)
        result = fit(rows, self.limits)
        if result.count:
            return Answer(result)
        values = self._hint(hint_for_empty, statement, database)
        return Answer(replace(result, hint=values or ""), repeatable=values is not None)

    def describe_table(self, table: str) -> str:
        """Return name, type, comment and samples of each column, or an error with allowed tables."""
        database = self.database()
        name = fold(str(table).strip())
        if name not in self.allowed_tables:
            known = "、".join(sorted(self.allowed_tables))
            reason = f"没有表 {shorten(neutralise(name), 60)}，可用的表：{known}。"
            return compact({"status": "error", "error": reason})
        result = self.run(database.first_rows(name, 3))
        samples: dict[str, list[Any]] = {}
        for row in result.rows:
            for column_name, value in zip(result.columns, row, strict=True):
                if value is not None:
                    shown = shorten(value, 20) if isinstance(value, str) else value
                    samples.setdefault(column_name, []).append(shown)
        columns = []
        for column in database.columns(name):
            entry: dict[str, Any] = {"name": neutralise(database.as_written(column.name))}
            if column.type:
                entry["type"] = neutralise(column.type)
            if column.comment:
                entry["comment"] = neutralise(column.comment[:60])
            if column.name in samples:
                entry["samples"] = samples[column.name]
            columns.append(entry)
        return compact({"status": "success", "table": name, "columns": columns})

    def _failed(self, reason: str, near: str | None, database: Database, sql: str) -> QueryResult:
        spelling = self._hint(hint_for_spelling, sql, reason, database, self.allowed_tables)
        return replace(failure(reason), hint=spelling or near or "")

    def _hint(self, find: Callable[..., str | None], *arguments: Any) -> str | None:
        """Return a hint, "" without any, None if the account may not describe the tables."""
        if not self.hints:
            return ""
        try:
            return find(*arguments)
        except errors.DatabaseError as error:
            LOG.warning("a statement gets no hint: %s", error)
            return None


@lru_cache(maxsize=8)
def excess_of(database: Database, tables: frozenset[str]) -> str:
    """Return the account's rights beyond reading. Warn of them, or refuse if DATABASE_STRICT."""
    excess = ", ".join(sorted(database.excess(tables)))
    if excess:
        message = f"the account of {database.label} may do more than read its tables: {excess}"
        if load_settings().of(DatabaseSettings).database_strict:
            raise errors.DatabaseError(
                f"{message}; DATABASE_STRICT wants the account of docs/safety.md"
            )
        LOG.warning("%s; docs/safety.md says what to grant", message)
    return excess
