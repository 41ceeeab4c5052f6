"""SQLite, opened with mode=ro and query_only.

An authorizer allows only the named tables (through views and WITH too), and a progress handler
stops long work.
"""

import re
import sqlite3
import time
from collections.abc import Callable, Hashable
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from sqlalchemy import URL, create_engine, event
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import QueuePool

from common.files import read_only_uri
from tools.sql.database import ENGINES, POOL, Column, Database, Rows
from tools.sql.errors import DatabaseError, DeadlineExceeded, Exhausted, GuardFault, StatementError
from tools.sql.guard import FUNCTIONS, Statement
from tools.sql.scopes import fold

# Steps of SQLite's virtual machine between two looks at the deadline: a few ms at most
OPERATIONS_PER_CHECK = 10_000
# Of the deadline: deleting a large sort's temporary file takes a while
CLEANUP_SHARE = 0.2
# Of one text cell. A result shows less, and many long cells would fill memory
KEPT_BYTES = 40_000
# Rows. To run a statement again takes its time twice, and a slow one would not be counted
COUNTED_BY_READING = 500

SEED = 0  # of random()

SETTINGS = ENGINES["sqlite"]
SYNTAX = re.compile("syntax error|unrecognized token|incomplete input")
STATEMENT_CODES = {getattr(sqlite3, f"SQLITE_{name}") for name in SETTINGS["statement_codes"]}

# A column's comment can live in the text of CREATE TABLE: "name TEXT, -- what it is".
COLUMN_COMMENT = re.compile(
    r"""^\s*["`\[]?(\w+)["`\]]?[^\n]*?(?:--\s*|/\*\s*)([^\n*]+)""", re.MULTILINE
)


class OwnFunctions(SQLiteDialect_pysqlite):
    """Leaves SQLite its floor(). SQLAlchemy's is Python's, which refuses NULL and gives integers."""

    supports_statement_cache = True

    def on_connect(self) -> Callable[[Any], None]:
        return lambda connection: None


registry.register("sqlite.own", __name__, OwnFunctions.__name__)


class SqliteDatabase(Database):
    """One SQLite file."""

    dialect = "sqlite"
    # The statement runs in this thread and waits for nothing: its price is processor time, which a
    # busy or a stopped machine does not add to.
    clock = staticmethod(time.thread_time)

    def __init__(self, url: URL) -> None:
        """Open the file of a URL. Raises DatabaseError: there is none, or it is another kind."""
        if not url.database or url.database == ":memory:" or url.query:
            raise DatabaseError(
                "DATABASE_URL must name a file and no options: sqlite:////path/to/medical.db"
            )
        self.path = path = Path(url.database).resolve()
        self.label = str(path)
        self.url = url.set(database=str(path)).render_as_string(hide_password=False)
        if not path.is_file():
            raise DatabaseError(
                f"no database at {path}; mend its address (DATABASE_URL or a flag), or make the bundled "
                "one: .venv/bin/python -m data.build_database"
            )
        # Its default pool for files would not be bounded
        self._engine = create_engine(
            "sqlite+own://", poolclass=QueuePool, creator=lambda: _connect(path), **POOL
        )
        event.listen(self._engine, "connect", self._remember_file)
        event.listen(self._engine, "checkout", self._same_file)
        self._columns: dict[str, tuple[Hashable, list[Column]]] = {}
        self.tables = self.read_tables()

    def read_tables(self) -> frozenset[str]:
        found = self._catalog("SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view')")
        self._views: dict[frozenset[str], tuple[frozenset[str], frozenset[str]]] = {}
        self._virtual = frozenset(
            fold(name) for name, sql in found if (sql or "").upper().startswith("CREATE VIRTUAL")
        )
        return frozenset(fold(name) for name, _ in found)

    def check_tables(self, tables: frozenset[str]) -> None:
        virtual = ", ".join(sorted(tables & self._virtual))
        if virtual:
            raise DatabaseError(
                f"{virtual} of {self.label} is a virtual table (FTS5 and the like), which is computed "
                "by code of SQLite and cannot be guarded; list the table that holds its rows"
            )
        super().check_tables(tables)

    def _remember_file(self, connection: sqlite3.Connection, record: Any) -> None:
        record.info["file"] = _state(self.path)[:2]

    def _same_file(self, connection: sqlite3.Connection, record: Any, proxy: Any) -> None:
        """Drop a connection whose file was replaced: an open file outlives its deletion."""
        if record.info["file"] != _state(self.path)[:2]:
            raise DisconnectionError(f"{self.path} was replaced")

    def version(self) -> Hashable:
        return _state(self.path), _state(self.path.with_name(self.path.name + "-wal"))

    def columns(self, table: str) -> list[Column]:
        version = self.version()
        kept = self._columns.get(table)
        if kept and kept[0] == version:
            return kept[1]
        # Hidden columns of virtual tables are 1. Generated columns are 2 and 3
        found = self._catalog(
            "SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden != 1", table
        )
        texts = self._catalog("SELECT sql FROM sqlite_master WHERE lower(name) = ?", fold(table))
        comments = dict(COLUMN_COMMENT.findall(texts[0][0] or "")) if texts else {}
        columns = [Column(name, kind, comments.get(name, "").strip()) for name, kind in found]
        self._columns[table] = (version, columns)
        return columns

    def _views_through(self, tables: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Return what a statement on these tables reads through, views and WITH, and reads at all."""
        if tables in self._views:
            return self._views[tables]
        found: set[str] = set()
        behind: set[str] = set()

        def note(action: int, *names: str | None) -> int:
            view = names[-1]
            if view:
                found.add(fold(view))
            if action == sqlite3.SQLITE_READ:
                behind.add(fold(names[0] or ""))
            return sqlite3.SQLITE_OK

        with closing(_connect(self.path)) as connection:
            connection.set_authorizer(note)
            for table in tables & self.tables:
                # A view of a table that is gone fails when it is read.
                with suppress(sqlite3.Error):
                    connection.execute(f"EXPLAIN {self.first_rows(table, 1)}").close()
        self._views[tables] = frozenset(found), frozenset(behind | found)
        return self._views[tables]

    def _authorizer(self, statement: Statement, tables_read: set[str]) -> Callable[..., int]:
        """Return SQLite's callback, which fills `tables_read`."""
        functions = FUNCTIONS["sqlite"]
        real_names = self.tables
        views, behind = self._views_through(statement.allowed)

        def authorize(
            action: int, first: str | None, second: str | None, schema: str | None, view: str | None
        ) -> int:
            if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
                return sqlite3.SQLITE_OK
            # SQLite names a WITH in the same place as a view.
            in_view = fold(view or "") in views - statement.own_names
            if action == sqlite3.SQLITE_FUNCTION and (in_view or fold(second or "") in functions):
                return sqlite3.SQLITE_OK
            if action == sqlite3.SQLITE_READ:
                name = fold(first or "")
                if name in statement.allowed:
                    tables_read.add(name)
                    return sqlite3.SQLITE_OK
                # A view that may be read shows what its operator chose of other tables.
                if in_view:
                    return sqlite3.SQLITE_OK
                # SQLite may count the rows of a view in the table or the WITH behind it
                if not second and name in behind:
                    tables_read.update(statement.tables & real_names)
                    return sqlite3.SQLITE_OK
                # Reading no column, as count(*) does, is also reported for names that the
                # statement defines itself.
                is_own = not name or name in statement.own_names
                if not second and name not in real_names and is_own:
                    return sqlite3.SQLITE_OK
            return sqlite3.SQLITE_DENY

        return authorize

    def _catalog(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        """Run our own statement on a new connection, because pooled ones keep their authorizer."""
        try:
            with closing(_connect(self.path)) as connection:
                return connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._broken(error) from None

    def read_once(self, statement: Statement, deadline: float, max_rows: int) -> Rows:
        end = self.clock() + deadline * (1 - CLEANUP_SHARE)
        tables_read: set[str] = set()
        was_read = False
        pooled = self.connection()
        connection = pooled.driver_connection
        assert isinstance(connection, sqlite3.Connection)
        try:
            connection.set_authorizer(self._authorizer(statement, tables_read))
            connection.set_progress_handler(lambda: self.clock() > end, OPERATIONS_PER_CHECK)
            _seed(connection)
            if statement.written:  # compiled, and not run
                connection.execute(f"EXPLAIN {statement.written}").close()
                was_read = True
            with closing(connection.execute(statement.sql)) as cursor:
                columns = [column[0] for column in cursor.description or ()]
                rows = cursor.fetchmany(max_rows)
                more = sum(1 for _ in islice(cursor, COUNTED_BY_READING))
            count = len(rows) + more
            exact = more < COUNTED_BY_READING
            if not exact:
                count, exact = _count(connection, statement.sql, count)
        except (sqlite3.Error, sqlite3.Warning) as error:
            if was_read and SYNTAX.search(str(error)):
                raise GuardFault(str(error)) from None
            raise self.explain(error) from None
        finally:
            connection.set_progress_handler(None, 0)
            connection.set_authorizer(None)
            pooled.close()
        return Rows(columns, rows, count, exact, frozenset(tables_read))

    def explain(self, error: Exception) -> Exception:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT:
            return DeadlineExceeded(str(error))
        if code in STATEMENT_CODES:
            return StatementError(str(error))
        if code in (sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_FULL):
            return self._broken(error, Exhausted)
        is_busy = code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        return self._broken(error, DatabaseError) if is_busy else self._broken(error)


def _connect(path: Path) -> sqlite3.Connection:
    uri = read_only_uri(path)
    # Without a statement cache every statement passes the authorizer of its own call.
    connection = sqlite3.connect(
        uri, uri=True, timeout=1.0, check_same_thread=False, cached_statements=0
    )
    connection.isolation_level = None
    connection.text_factory = _text
    connection.execute("PRAGMA query_only = ON")
    for name, value in SETTINGS["limits"].items():
        connection.setlimit(getattr(sqlite3, f"SQLITE_LIMIT_{name}"), value)
    return connection


def _seed(connection: sqlite3.Connection) -> None:
    """Reseed random(), so that the same statement gives the same rows and training is repeatable."""
    draw = Random(SEED)
    connection.create_function("random", 0, lambda: draw.getrandbits(64) - 2**63)


def _text(raw: bytes) -> str:
    return raw[:KEPT_BYTES].decode("utf-8", "replace")


def _state(path: Path) -> tuple[int, ...]:
    """Return device and number of the file, then what a write changes, or () without a file."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _count(connection: sqlite3.Connection, sql: str, at_least: int) -> tuple[int, bool]:
    """Count rows without building them, or return `at_least` if that takes too long."""
    _seed(connection)
    try:
        return connection.execute(f"SELECT count(*) FROM ({sql})").fetchone()[0], True
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF not in STATEMENT_CODES:
            raise
        return at_least, False
