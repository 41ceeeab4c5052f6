"""Read-only access to the database behind a URL: the part that all engines share.

database = open_database("sqlite:////data/medical.db")
database.read(check("SELECT ...", "sqlite", {"drugs_info"}), deadline=1.0, max_rows=20)
"""

import logging
import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pkgutil import resolve_name
from typing import Any, NamedTuple

from sqlalchemy import Engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import PoolProxiedConnection
from sqlglot import exp

from common.toml import table_beside
from tools.sql.errors import ConnectionLost, DatabaseError, DeadlineExceeded, StatementError
from tools.sql.guard import Statement
from tools.sql.scopes import fold

LOG = logging.getLogger(__name__)
ENGINES = table_beside(__file__, "engines.toml")
# Each is imported when it is used, so that its driver is needed only then.
CLASSES = {
    "sqlite": "tools.sql.sqlite:SqliteDatabase",
    "postgresql": "tools.sql.postgres:PostgresDatabase",
}
CLASSES |= dict.fromkeys(("mysql", "mariadb"), "tools.sql.mysql:MysqlDatabase")

# Statements of one process that run at the same time. Further ones wait before their deadline
# starts, or sixty-four scans on two cores would each be sixty-four times as slow.
CONCURRENT = min(8, max(2, os.cpu_count() or 1))
# Of an engine. pool_timeout: seconds until a caller that got no connection gets an error
POOL: dict[str, Any] = {"pool_size": CONCURRENT, "max_overflow": 0, "pool_timeout": 60.0}
PERCENT = "a user or password with @ : / ? must be percent-encoded (@ is %40)"
PLAIN_NAME = re.compile(r"[^\W\d]\w*")
PROOF_SECONDS = 2.0  # for a trivial query of ours


@dataclass(frozen=True)
class Rows:
    """What a statement returned.

    count: of all its rows, or a lower bound if not exact. tables_read: allowed tables that SQLite
    opened, or that a statement for a server names.
    """

    columns: list[str]
    rows: list[tuple[Any, ...]]
    count: int
    count_is_exact: bool
    tables_read: frozenset[str] = frozenset()


class Column(NamedTuple):
    """A column of a table, as the database describes it."""

    name: str
    type: str
    comment: str = ""


class Database(ABC):
    """One read-only database, safe to use from many threads.

    dialect: sqlglot's name. label: what operators read, without a password. tables: folded names of
    all visible tables and views. schema: where they are, on PostgreSQL. url: for other processes.
    """

    dialect: str
    schema = ""
    advice = ""  # about tables that are not there
    url: str
    label: str
    tables: frozenset[str]
    _engine: Engine
    _opened: frozenset[str] = frozenset()  # tables that were read once
    # Seconds by which a statement's deadline is measured.
    clock: Callable[[], float] = staticmethod(time.monotonic)

    def connection(self) -> PoolProxiedConnection:
        try:
            return self._engine.raw_connection()
        except (SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error) as error:
            raise self._broken(error) from None

    def _broken(
        self, error: Exception, kind: type[DatabaseError] = ConnectionLost
    ) -> DatabaseError:
        """Return the error to raise if the machine caused the driver's error."""
        reason = " ".join(str(getattr(error, "orig", None) or error).split())
        return kind(f"cannot read the database {self.label}: {reason[:300]}")

    def read(self, statement: Statement, deadline: float, max_rows: int) -> Rows:
        """Run a SELECT that the guard let pass. A broken connection is replaced once.

        deadline: seconds of `clock` for the whole call. max_rows: the rest is only counted. Raises
        StatementError: it is wrong, forbidden or too expensive. Raises DatabaseError: the database
        is gone, locked or damaged.
        """
        try:
            return self.read_once(statement, deadline, max_rows)
        except ConnectionLost:
            self._engine.dispose()  # the other pooled connections are most likely as dead
            return self.read_once(statement, deadline, max_rows)

    def read_table(
        self, table: str, sql: str, deadline: float, max_rows: int, written: str = ""
    ) -> Rows:
        """Run a SELECT of ours on one table. Raises as `read`."""
        own = frozenset({table})
        return self.read(Statement(sql, own, written, tables=own), deadline, max_rows)

    def prove(self, tables: Iterable[str]) -> None:
        """Raise DatabaseError if a new connection fails or does not return a row of each table."""
        self._engine.dispose()
        try:
            for table in tables:
                self._sample(table, 1)
        except StatementError as error:
            raise self._broken(error, DatabaseError) from None

    def as_written(self, name: str) -> str:
        """Return a name, quoted where the dialect needs it."""
        reserved = self._engine.dialect.identifier_preparer.reserved_words
        folded = self.dialect != "postgres" or name == name.lower()
        if PLAIN_NAME.fullmatch(name) and fold(name) not in reserved and folded:
            return name
        return exp.to_identifier(name, quoted=True).sql(dialect=self.dialect)

    def place(self, table: str) -> exp.Table:
        """Return a table as FROM names it, whatever its name needs."""
        return exp.table_(table, db=self.schema or None, quoted=True)

    def first_rows(self, table: str, count: int) -> str:
        """Return a statement for rows of a table."""
        return exp.select("*").from_(self.place(table)).limit(count).sql(dialect=self.dialect)

    def _sample(self, table: str, count: int) -> None:
        """Read a table's first rows on the way that a policy's statement takes."""
        sql = self.first_rows(table, count)
        self.read_table(table, sql, PROOF_SECONDS, 1, written=sql)

    @abstractmethod
    def read_once(self, statement: Statement, deadline: float, max_rows: int) -> Rows:
        """Run `read` on one pooled connection. Raises ConnectionLost if that connection broke."""

    def excess(self, tables: frozenset[str]) -> set[str]:
        """Return the account's rights beyond reading. Engines without accounts have none."""
        return set()

    def check_tables(self, tables: frozenset[str]) -> None:
        """Raise DatabaseError if a table is still missing after a second look, or cannot be read."""
        if not tables <= self.tables:
            self.tables = self.read_tables()
        missing = sorted(tables - self.tables)
        if missing:
            raise DatabaseError(
                f"the database {self.label} has no table {', '.join(missing)}{self.advice}"
            )
        for table in sorted(tables - self._opened):
            self.open_table(table, 1)
            self._opened |= {table}

    def open_table(self, table: str, rows: int = 0) -> None:
        """Raise DatabaseError if a table is gone, or the account or a view cannot read it."""
        try:
            self._sample(table, rows)
        except DeadlineExceeded:
            LOG.warning("the first row of %s in %s takes long", table, self.label)
        except StatementError as error:
            raise DatabaseError(
                f"the table {table} of {self.label} cannot be read: {error}"
            ) from None

    @abstractmethod
    def read_tables(self) -> frozenset[str]:
        """Return the folded names of all tables and views that the account can see now."""

    @abstractmethod
    def version(self) -> Hashable:
        """Return a value that changes when earlier results may be outdated."""

    @abstractmethod
    def columns(self, table: str) -> list[Column]:
        """Return the columns of a table in order, or [] without it. Raises DatabaseError."""


_opening = threading.Lock()


def open_database(url: str) -> Database:
    """Return the database behind a URL, opened once per URL and process. Raises DatabaseError."""
    with _opening:  # SQLAlchemy's first import of a dialect is not thread-safe
        return _opened(url)


def forget_databases() -> None:
    """Forget them in a forked child: connections and other threads' locks must not cross a fork."""
    global _opening
    _opening = threading.Lock()
    _opened.cache_clear()


def has_bare_at(url: str) -> bool:
    """Return whether a URL has an @ in its user or password, which drivers show in errors."""
    authority = re.split(r"[/?]", url.partition("://")[2])[0]
    return authority.count("@") > 1


@lru_cache(maxsize=8)
def _opened(url: str) -> Database:
    if has_bare_at(url):
        raise DatabaseError(f"DATABASE_URL: {PERCENT}")
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # ValueError: a port that is not a number, several hosts
        raise DatabaseError(
            "DATABASE_URL is not a database URL with one host; write it like "
            "sqlite:////path/to/medical.db or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        ) from None
    name = parsed.get_backend_name()
    if name not in CLASSES:
        raise DatabaseError(f"DATABASE_URL names {name}; use sqlite, postgresql, mysql or mariadb")
    try:
        database: Database = resolve_name(CLASSES[name])(parsed)
        return database
    except (TypeError, AttributeError, ValueError, OSError) as error:
        # The driver's own words for options that it does not know, such as those of JDBC, for a
        # certificate that is not there, or for a host that cannot be one
        if isinstance(error, (TypeError, AttributeError)) and not parsed.query:
            raise
        options = f" or the options {', '.join(sorted(parsed.query))}" if parsed.query else ""
        raise DatabaseError(
            f"DATABASE_URL: the driver of {name} cannot use the place{options}: {error}"
        ) from None


os.register_at_fork(after_in_child=forget_databases)
