"""Read-only access to the database behind a URL: connections that cannot write, and one statement at a time.

Whatever a statement says, the connection refuses: the file is opened with mode=ro and query_only, an authorizer allows
reading the named tables only, and a deadline stops long work. What the model did wrong is a StatementError with the
database's reason; what the machine did wrong is a DatabaseError.

    database = open_database("sqlite:////data/medical.db")
    database.read("SELECT ...", Access(tables={"drugs_info"}), deadline=1.0, max_rows=20)
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

POOLED_CONNECTIONS = 8
LOCK_WAIT = 1.0  # seconds
OPERATIONS_PER_CHECK = 1000  # of SQLite's virtual machine, between two looks at the deadline: under 1 ms
KEPT_BYTES = 40_000  # of one text cell; a result shows less, and many long cells would fill the memory
COUNTED_ROWS = 10_000  # beyond the rows returned, rows are counted up to here

# Per connection. LENGTH must exceed the longest stored cell, or reading it fails; longer strings can only be built by
# the statement itself, and one string function on megabytes runs for seconds without a look at the deadline.
SQLITE_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 200_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 64,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 300,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 50_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}

SQLITE_FUNCTIONS = {
    "abs", "avg", "cast", "coalesce", "count", "cume_dist", "date", "datetime", "dense_rank", "first_value",
    "glob", "group_concat", "ifnull", "iif", "instr", "julianday", "lag", "last_value", "lead", "length",
    "like", "lower", "ltrim", "max", "min", "nth_value", "ntile", "nullif", "percent_rank", "rank", "replace",
    "round", "row_number", "rtrim", "sign", "strftime", "substr", "substring", "sum", "time", "total", "trim",
    "typeof", "unicode", "unixepoch", "upper",
}  # fmt: skip

# Result codes of SQLite that speak about the statement; every other one is trouble with the file or the machine.
STATEMENT_CODES = {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_READONLY,
}


class DatabaseError(RuntimeError):
    """The database cannot be reached or read: an operator's problem, never text for the model."""


class StatementError(ValueError):
    """The database refused the statement or gave up on it; the message is its reason."""


class DeadlineExceeded(StatementError):
    """The statement was stopped because its time was over."""


@dataclass(frozen=True)
class Access:
    """What one statement may read: lower-case base tables, and the names it defines itself."""

    tables: frozenset[str]
    own_names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Rows:
    """What a statement returned: at most `max_rows` rows, the number of rows counted, whether there were more still."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    count: int
    count_is_exact: bool
    tables_read: frozenset[str] = field(default=frozenset())


class Database:
    """One SQLite file, read-only; safe to use from many threads."""

    dialect = "sqlite"

    def __init__(self, path: Path) -> None:
        """Open `path`.

        Raises:
            DatabaseError: no such file, or not an SQLite database.
        """
        self.path = path
        self._engine = _sqlite_engine(path)
        self.tables = self._read_tables()

    def read(self, sql: str, access: Access, deadline: float, max_rows: int) -> Rows:
        """Run one SELECT and fetch at most `max_rows` rows.

        Args:
            sql: a statement the guard let pass.
            access: what it may read.
            deadline: seconds the whole statement may take, fetching included.
            max_rows: rows to return; further ones are only counted.

        Raises:
            StatementError: the statement is wrong, forbidden or too expensive.
            DatabaseError: the database is gone, locked or damaged.
        """
        try:
            pooled = self._engine.raw_connection()
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise self._broken(error) from None
        with closing(pooled):
            connection = pooled.driver_connection
            assert isinstance(connection, sqlite3.Connection)
            return self._read_on(connection, sql, access, time.monotonic() + deadline, max_rows)

    def _read_on(self, connection: sqlite3.Connection, sql: str, access: Access, end: float, max_rows: int) -> Rows:
        tables_read: set[str] = set()
        connection.set_authorizer(_authorizer(access, self.tables, tables_read))
        connection.set_progress_handler(lambda: time.monotonic() > end, OPERATIONS_PER_CHECK)
        try:
            with closing(connection.cursor()) as cursor:
                columns, rows, count, exact = _fetch(cursor.execute(sql), max_rows)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise self._explain(error) from None
        finally:
            connection.set_progress_handler(None, 0)
        return Rows(columns, rows, count, exact, frozenset(tables_read))

    def _read_tables(self) -> frozenset[str]:
        try:
            with closing(self._engine.raw_connection()) as connection:
                found = connection.cursor().execute("SELECT lower(name) FROM sqlite_master").fetchall()
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise self._broken(error) from None
        return frozenset(name for (name,) in found)

    def _explain(self, error: Exception) -> Exception:
        """The error to raise for the driver's; one without a code comes from its own checks of the statement."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code not in STATEMENT_CODES:
            return self._broken(error)
        if code == sqlite3.SQLITE_INTERRUPT:
            return DeadlineExceeded(str(error))
        return StatementError(str(error))

    def _broken(self, error: Exception) -> DatabaseError:
        reason = getattr(error, "orig", None) or error
        return DatabaseError(f"cannot read the database {self.path}: {reason}")


def open_database(url: str) -> Database:
    """The database behind a SQLAlchemy URL, opened once per URL and process.

    Raises:
        DatabaseError: not a URL, not SQLite, in memory, no such file, or not a database.
    """
    return _open(url)


@lru_cache(maxsize=8)
def _open(url: str) -> Database:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise DatabaseError("DATABASE_URL is not a database URL; write it like sqlite:////path/to/medical.db") from None
    if parsed.get_backend_name() != "sqlite":
        raise DatabaseError(f"DATABASE_URL names {parsed.get_backend_name()}; only sqlite:// is supported yet")
    if not parsed.database or parsed.database == ":memory:" or parsed.query:
        raise DatabaseError("DATABASE_URL must name a file and no options: sqlite:////path/to/medical.db")
    path = Path(parsed.database).resolve()
    if not path.is_file():
        raise DatabaseError(f"no database at {path}; run python -m data.build_database, or set DATABASE_URL")
    return Database(path)


# SQLite connections must not be carried across a fork; a child opens its own.
os.register_at_fork(after_in_child=_open.cache_clear)


def _sqlite_engine(path: Path) -> Engine:
    """An engine whose pool grows with the number of threads that query at once."""

    def connect() -> sqlite3.Connection:
        uri = f"file:{quote(str(path))}?mode=ro"
        # Without a statement cache every statement passes the authorizer of its own call.
        connection = sqlite3.connect(uri, uri=True, timeout=LOCK_WAIT, check_same_thread=False, cached_statements=0)
        connection.isolation_level = None
        connection.text_factory = lambda raw: raw[:KEPT_BYTES].decode("utf-8", "replace")
        connection.execute("PRAGMA query_only = ON")
        for limit, value in SQLITE_LIMITS.items():
            connection.setlimit(limit, value)
        return connection

    engine = create_engine(
        "sqlite://", creator=connect, poolclass=QueuePool, pool_size=POOLED_CONNECTIONS, max_overflow=-1
    )

    @event.listens_for(engine, "connect")
    def remember_file(connection: sqlite3.Connection, record: Any) -> None:
        record.info["file"] = _identity(path)

    @event.listens_for(engine, "checkout")
    def same_file(connection: sqlite3.Connection, record: Any, proxy: Any) -> None:
        # An open file outlives its deletion or replacement; a new connection sees what is there now.
        if record.info["file"] != _identity(path):
            raise DisconnectionError(f"{path} was replaced")

    return engine


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _authorizer(access: Access, real_names: frozenset[str], tables_read: set[str]) -> Callable[..., int]:
    """SQLite's callback for every action of a statement being compiled; adds the tables read to `tables_read`."""

    def authorize(action: int, first: str | None, second: str | None, schema: str | None, trigger: str | None) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in SQLITE_FUNCTIONS:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            name = (first or "").lower()
            if name in access.tables:
                tables_read.add(name)
                return sqlite3.SQLITE_OK
            # Reading no column, as count(*) does, is also reported for names the statement defines itself.
            if not second and name not in real_names and (not name or name in access.own_names):
                return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    return authorize


def _fetch(cursor: sqlite3.Cursor, max_rows: int) -> tuple[list[str], list[tuple[Any, ...]], int, bool]:
    columns = [column[0] for column in cursor.description or ()]
    rows = cursor.fetchmany(max_rows)
    count = len(rows)
    for _ in cursor:
        count += 1
        if count >= COUNTED_ROWS:
            return columns, rows, count, False
    return columns, rows, count, True
