"""What both database servers share: pool, read-only transactions, cut cells, deadlines.

Cells are cut before they are kept, because rows of them may be a gigabyte. At the deadline a timer
hangs up and has the connection terminated.
"""

import os
import socket
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sqlalchemy import URL, create_engine, event, inspect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import PoolProxiedConnection

from tools.sql import errors
from tools.sql.database import POOL, Column, Database, Rows
from tools.sql.guard import Statement

MAX_COLUMNS = 1_600  # as many as a table of PostgreSQL may have
GRACE = 0.15  # seconds after the deadline in which the server may stop by itself
EARLY = 0.2  # of the deadline: what a server may measure otherwise
SHORTEST = 0.01  # seconds. What is left for a statement when the deadline is about over
Columns = list[tuple[str, bool]]  # name, and whether the values can be long


class ServerDatabase(Database):
    """A database server. Subclasses give the dialect's words.

    driver: SQLAlchemy's name of dialect and driver. ending: SQL that ends a connection by its
    number. run_options: of the driver's `execute`.
    """

    driver: str
    ending: str
    run_options: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, url: URL) -> None:
        """Connect and read the names of tables and views. Raises DatabaseError."""
        shown = url.set(drivername=url.get_backend_name(), query={})  # options may hold passwords
        self.label = shown.render_as_string(hide_password=True)
        self.url = url.render_as_string(hide_password=False)
        self._url = url.set(drivername=self.driver)
        # `clean` resets connections, and reports a failure.
        self._arguments = self.driver_arguments(url)
        self._engine = create_engine(
            self._url, connect_args=self._arguments, pool_reset_on_return=None, **POOL
        )
        event.listen(self._engine, "connect", lambda connection, record: self.prepare(connection))
        self._columns: dict[str, list[Column]] = {}
        self.tables = self.read_tables()

    def read_tables(self) -> frozenset[str]:
        return frozenset(
            self._catalog(lambda found: [*found.get_table_names(), *found.get_view_names()])
        )

    def version(self) -> Hashable:
        return int(time.monotonic() / 300)  # a file has a time of change, a server has not

    def columns(self, table: str) -> list[Column]:
        if table not in self.tables:
            return []
        if table not in self._columns:
            found = self._catalog(lambda inspector: inspector.get_columns(table))
            self._columns[table] = [
                Column(c["name"], str(c["type"]), c.get("comment") or "") for c in found
            ]
        return self._columns[table]

    @abstractmethod
    def driver_arguments(self, url: URL) -> dict[str, Any]:
        """Return the driver's arguments for a new connection."""

    @abstractmethod
    def prepare(self, connection: Any) -> None:
        """Make a new connection a safe one."""

    @abstractmethod
    def begin(self, cursor: Any, seconds: float) -> None:
        """Begin a read-only transaction whose statements take at most `seconds` each."""

    @abstractmethod
    def set_deadline(self, cursor: Any, seconds: float) -> None:
        """Let the following statements of the transaction take at most `seconds` each."""

    @abstractmethod
    def compile(self, cursor: Any, sql: str) -> None:
        """Let the server read a statement without running it."""

    @abstractmethod
    def describe(self, cursor: Any, sql: str) -> Columns:
        """Return the statement's columns."""

    @abstractmethod
    def first_cut(
        self, cursor: Any, sql: str, columns: Columns, max_rows: int, kept: int
    ) -> list[tuple[Any, ...]]:
        """Return the first rows in the statement's order, their cells cut to `kept` characters."""

    def _run(self, cursor: Any, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement of the model, and fetch everything."""
        cursor.execute(sql, **self.run_options)
        return list(cursor.fetchall())

    def clean(self, connection: Any) -> None:
        """End the transaction and reset whatever the session may have set."""
        connection.rollback()

    @abstractmethod
    def line(self, connection: Any) -> tuple[int, int]:
        """Return the connection's socket number, and the server's number of the connection."""

    def _stop(self, connection: Any, stopped: list[Any]) -> None:
        """Hang up, so that no caller waits, and end the statement over a second connection."""
        line, backend = self.line(connection)
        stopped.append(connection)
        with suppress(OSError), socket.socket(fileno=os.dup(line)) as wire:
            wire.shutdown(socket.SHUT_RDWR)
        threading.Thread(target=self._terminate, args=(backend,), daemon=True).start()

    def _terminate(self, backend: int) -> None:
        engine = create_engine(self._url, connect_args=self._arguments)
        # A server that cannot be reached fails the proof, too (Database.prove)
        with suppress(SQLAlchemyError), engine.connect() as connection:
            connection.exec_driver_sql(self.ending.format(backend))

    @abstractmethod
    def explain(self, error: Exception, connection: Any) -> Exception:
        """Return the error to raise for the driver's error."""

    def _catalog(self, read: Callable[[Any], list[Any]]) -> list[Any]:
        try:
            return read(inspect(self._engine))
        except (SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error) as error:
            raise self._broken(error) from None

    def ask(self, sql: str, *values: Any) -> list[Any]:
        try:
            with self._engine.connect() as connection:
                return list(connection.exec_driver_sql(sql, values))
        except SQLAlchemyError as error:
            raise self._broken(error) from None

    def read_once(self, statement: Statement, deadline: float, max_rows: int) -> Rows:
        pooled = self.connection()
        problem = None
        connection: Any = pooled.driver_connection
        stopped = list[Any]()
        timer = threading.Timer(deadline + GRACE, self._stop, (connection, stopped))
        timer.start()
        end = time.monotonic() + deadline
        was_read = False
        try:
            with closing(connection.cursor()) as cursor:
                self.begin(cursor, end - time.monotonic())
                if statement.written:
                    self.compile(cursor, statement.written)
                    was_read = True
                found = self._fetch(cursor, statement, end, max_rows)
            self.clean(connection)
        except Exception as error:
            problem = self.explain(error, connection)
            if was_read and isinstance(problem, errors.SyntaxRefused):
                problem = errors.GuardFault(str(problem))
            if (
                isinstance(problem, errors.DeadlineExceeded)
                and time.monotonic() < end - EARLY * deadline
            ):
                problem = self._broken(error, errors.ConnectionLost)  # somebody else cancelled it
        timer.cancel()
        timer.join()  # a stop that has begun could hit the connection's next user
        self._give_back(pooled, problem, bool(stopped))
        if problem is None:
            return found
        if stopped and isinstance(problem, errors.DatabaseError):
            raise errors.Exhausted(
                f"the database {self.label} did not answer in {deadline:g} s and was hung up on"
            )
        raise problem

    def _fetch(self, cursor: Any, statement: Statement, end: float, max_rows: int) -> Rows:
        sql = statement.sql
        columns = self.describe(cursor, sql)
        if len(columns) > MAX_COLUMNS:
            raise errors.StatementError(f"too many columns: {len(columns)}, at most {MAX_COLUMNS}")
        if not columns:
            raise errors.GuardFault("no columns")
        self.set_deadline(cursor, max(SHORTEST, end - time.monotonic()))
        rows = self.first_cut(cursor, sql, columns, max_rows + 1, statement.kept)
        names = [name for name, _ in columns]
        found = Rows(names, rows[:max_rows], len(rows), True, statement.tables)
        if len(rows) <= max_rows:
            return found
        count, exact = self._count(cursor, sql, columns, end, len(rows))
        return replace(found, count=count, count_is_exact=exact)

    def _count(
        self, cursor: Any, sql: str, columns: Columns, end: float, at_least: int
    ) -> tuple[int, bool]:
        """Return the number of rows, or `at_least` if counting takes too long or is refused."""
        self.set_deadline(cursor, max(SHORTEST, end - time.monotonic()))
        try:
            counted = f"WITH counted({names_of(columns)}) AS ({sql}) SELECT count(*) FROM counted"
            return self._run(cursor, counted)[0][0], True
        except Exception as error:
            # MariaDB looks up the ORDER BY of a UNION among the new names
            if isinstance(self.explain(error, cursor.connection), errors.StatementError):
                return at_least, False
            raise

    def _give_back(
        self, pooled: PoolProxiedConnection, problem: Exception | None, stopped: bool
    ) -> None:
        doubtful = stopped or isinstance(problem, errors.DatabaseError)
        try:
            if problem and not doubtful:
                self.clean(pooled.driver_connection)
        except Exception:
            # The statement's own error is reported. The connection is only closed
            doubtful = True
        if doubtful:
            pooled.invalidate()
        pooled.close()


def names_of(columns: Columns) -> str:
    return ", ".join(f"c{number}" for number in range(len(columns)))
