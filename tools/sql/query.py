"""The tools agents get: query_database_by_sql, SQL text in, a bounded JSON result or a helpful
error out, and two more.

    query = build_tool("sqlite:////data/medical.db")        # without a URL: the setting DATABASE_URL
    query("SELECT indication FROM drugs_info WHERE med_name = '...'")

    tool = QueryTool("sqlite:////data/medical.db")          # the same with the result as an object
    tool.run("SELECT ...").tables_read

    tools = SchemaTools(tool)                               # for agents on unfamiliar databases; JSON text
    tools.list_tables(), tools.describe_table("drugs_info")

What the model did wrong comes back as a result with status "error"; a database that is gone raises
DatabaseError. SQL is read and run in worker processes (tools/sql/pool.py). One tool may be used
from many threads. Results of one SQL are kept, for the database is read-only.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

from cachetools import LRUCache

from tools.sql.database import (
    Access,
    Database,
    DatabaseError,
    DeadlineExceeded,
    StatementError,
    open_database,
)
from tools.sql.guard import MAX_SQL_BYTES, Refused, check
from tools.sql.hints import hint_for_empty, hint_for_error, hint_for_refusal
from tools.sql.pool import POOL, Overrun
from tools.sql.result import Limits, QueryResult, compact, failure, fit, neutralise, shorten
from tools.sql.scopes import fold

__all__ = [
    "DEFAULT_TABLES",
    "Limits",
    "QueryResult",
    "QueryTool",
    "SchemaTools",
    "build_tool",
    "neutralise",
]

LOG = logging.getLogger(__name__)

DEFAULT_TABLES = ("drugs_info", "disease")
DEFAULT_LIMITS = Limits()
LONGEST = MAX_SQL_BYTES + 1  # characters that need be looked at

BYTES_PER_CHARACTER = (
    6  # of SQL and JSON text: two for the text, the rest for the rows it was made from
)
ENTRY_BYTES = 1_500  # of one entry, whatever its size


class ResultCache:
    """Results of identical SQL, the least recently used dropped when they hold more than an
    estimated `max_bytes`.

    The rollouts of a GRPO group ask the same things again and again.
    """

    def __init__(self, max_bytes: int = 64 * 2**20) -> None:
        self.max_bytes = max_bytes
        self.clear()

    def clear(self) -> None:
        self._lock = threading.Lock()
        self._kept: LRUCache[Hashable, tuple[QueryResult, int]] = LRUCache(
            self.max_bytes, getsizeof=itemgetter(1)
        )

    def get(self, key: Hashable) -> QueryResult | None:
        with self._lock:
            return self._kept.get(key, (None, 0))[0]

    def put(self, key: Hashable, result: QueryResult, characters: int) -> None:
        """Keep a result whose key and text have so many characters, unless it is larger than all
        that is kept.
        """
        with self._lock, suppress(ValueError):
            self._kept[key] = (result, ENTRY_BYTES + BYTES_PER_CHARACTER * characters)


RESULTS = ResultCache()

# A fork while another thread holds the lock would leave it locked for ever in the child.
os.register_at_fork(after_in_child=RESULTS.clear)


class QueryTool:
    """Runs the model's SQL on one database; safe to share between threads, to fork and to pickle.

    excess: what the database's account may do beyond reading the tables, once it was opened; "" for
    nothing.

    Args:
        database_url: SQLAlchemy URL of an SQLite file, PostgreSQL, MySQL or MariaDB.
        allowed_tables: tables, and on servers views, that may be read.
        limits: bounds of one call.
        cache: whether results of identical SQL are kept in this process.
        hints: whether errors and empty results come with help for the model; looking for it takes
            longer than most statements.
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
        """Run one SELECT and return a result that fits the limits.

        Raises:
            DatabaseError: the database cannot be used, or lacks an allowed table.
        """
        database = self.database()
        if not self.cache:
            return self._ask(database, sql)[0]
        key = (
            self.database_url,
            self.allowed_tables,
            self.limits,
            self.hints,
            database.version(),
            sql,
        )
        kept = RESULTS.get(key)
        if kept is None:
            kept, repeatable = self._ask(database, sql)
            if repeatable:
                RESULTS.put(key, kept, len(sql) + len(kept.to_json()))
        return kept

    def database(self) -> Database:
        """The open database.

        Raises:
            DatabaseError: the database cannot be used, lacks an allowed table, or its account may
                do too much.
        """
        database = open_database(self.database_url)
        missing = self.allowed_tables - database.tables
        if missing:
            raise DatabaseError(
                f"the database {database.label} has no table {', '.join(sorted(missing))}"
            )
        self.excess = excess_of(database, self.allowed_tables)
        return database

    def _ask(self, database: Database, sql: str) -> tuple[QueryResult, bool]:
        """What a worker answers; a statement that ended it, on a database that is well, was too
        expensive.
        """
        try:
            answer: tuple[QueryResult, bool] = POOL.ask(database.url, self, sql[:LONGEST])
            return answer
        except Overrun:
            database.prove(self.allowed_tables)
            return failure("查询太费时间或内存，已停止。请增加条件，减少连接、嵌套或文本。"), False

    def answer(self, database: Database, sql: str) -> tuple[QueryResult, bool]:
        """The result, and whether the same SQL would give it again: a slow machine is not the
        statement's property.

        Raises:
            DatabaseError: the database failed, whoever's fault that was.
        """
        end = time.monotonic() + self.limits.deadline
        try:
            statement = check(sql, database.dialect, self.allowed_tables, database.schema)
        except Refused as refusal:
            hint = hint_for_refusal(refusal, database, self.allowed_tables) if self.hints else ""
            return replace(failure(str(refusal)), hint=hint), True
        try:
            access = Access(self.allowed_tables, statement.own_names, statement.tables)
            found = database.read(
                statement.sql, access, end - time.monotonic(), self.limits.max_rows
            )
        except DeadlineExceeded:
            return failure(
                f"查询超过 {self.limits.deadline:g} 秒，已停止。请增加条件或减少连接。"
            ), False
        except StatementError as error:
            hint = (
                hint_for_error(str(error), statement, database, self.allowed_tables)
                if self.hints
                else ""
            )
            return replace(failure(f"数据库报错：{error}"), hint=hint), True
        result = fit(found, self.limits)
        if result.count or not self.hints:
            return result, True
        near = hint_for_empty(statement, database, end)
        return replace(result, hint=near or ""), near is not None


@lru_cache(maxsize=8)
def excess_of(database: Database, tables: frozenset[str]) -> str:
    """What the account may do beyond reading the tables: said once, and refused where
    DATABASE_STRICT is set.
    """
    excess = ", ".join(sorted(database.excess(tables)))
    if excess:
        from common.settings import load_settings

        message = f"the account of {database.label} may do more than read its tables: {excess}"
        if load_settings().database_strict:
            raise DatabaseError(
                f"{message}; DATABASE_STRICT wants the account of docs/sql-safety.md"
            )
        LOG.warning("%s; docs/sql-safety.md says what to grant", message)
    return excess


def build_tool(
    url: str | None = None,
    allowed_tables: Iterable[str] = DEFAULT_TABLES,
    limits: Limits = DEFAULT_LIMITS,
    cache: bool = True,
) -> Callable[[str], str]:
    """A function from SQL to JSON text, for any agent framework; it raises DatabaseError for what
    the machine did only.

    Without a `url` the setting DATABASE_URL decides, else the embedded database is read; the rest
    as for QueryTool.
    """
    if url is None:
        from common.settings import load_settings

        url = load_settings().database_url
    tool = QueryTool(url, allowed_tables, limits, cache)

    def query_database_by_sql(sql: str) -> str:
        """Run one read-only SELECT; the result is JSON text."""
        return tool.run(sql).to_json()

    return query_database_by_sql


class SchemaTools:
    """Lists and describes the tables a query tool may read; samples come through it, by the same
    connection and limits.

    Both methods return JSON text with `status`, and raise DatabaseError when the database cannot be
    used.
    """

    def __init__(self, tool: QueryTool) -> None:
        self._tool = tool

    def list_tables(self) -> str:
        """{"status": "success", "tables": [name, ...]}."""
        self._tool.database()
        return compact({"status": "success", "tables": sorted(self._tool.allowed_tables)})

    def describe_table(self, table: str) -> str:
        """{"status": "success", "table": name, "columns": [{"name", "type", "comment", "samples"},
        ...]}.

        A table that may not be read gives status "error" with the allowed ones.
        """
        database = self._tool.database()
        name = fold(str(table).strip())
        if name not in self._tool.allowed_tables:
            known = "、".join(sorted(self._tool.allowed_tables))
            reason = f"没有表 {shorten(neutralise(name), 60)}，可用的表：{known}。"
            return compact({"status": "error", "error": reason})
        result = self._tool.run(f"SELECT * FROM {name} LIMIT 3")
        samples = {
            column: [row[at] for row in result.rows] for at, column in enumerate(result.columns)
        }
        columns = []
        for column in database.columns(name):
            described = {"name": column.name, "type": column.type, "comment": column.comment[:60]}
            entry: dict[str, Any] = {
                key: neutralise(value) for key, value in described.items() if value
            }
            found = [value for value in samples.get(column.name, []) if value is not None]
            if found:
                entry["samples"] = [
                    shorten(value, 20) if isinstance(value, str) else value for value in found
                ]
            columns.append(entry)
        return compact({"status": "success", "table": name, "columns": columns})
