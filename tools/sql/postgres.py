"""PostgreSQL through psycopg 3: read-only transaction, statement and lock time-outs.

The extended protocol takes one statement a message, so a COMMIT behind a SELECT cannot leave the
read-only transaction.
"""

import re
from functools import cached_property
from types import MappingProxyType
from typing import Any

import psycopg
import sqlglot
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from sqlalchemy import URL
from sqlglot import exp
from sqlglot.errors import ParseError

from tools.sql import errors
from tools.sql.database import ENGINES, Rows
from tools.sql.dialects import engine_dialect
from tools.sql.guard import COLLECTING, FUNCTIONS, Statement
from tools.sql.server import Columns, ServerDatabase, names_of

SETTINGS = ENGINES["postgres"]
# Whose fault the states are that begin like this
MACHINE = {
    errors.ConnectionLost: tuple(SETTINGS["repeatable"]),
    errors.Exhausted: tuple(SETTINGS["exhausted"]),
    errors.DatabaseError: tuple(SETTINGS["machine"]),
}
ADVICE = (
    "name tables without their schema, and another schema in DATABASE_URL "
    "(?options=-csearch_path%3DNAME); a table whose name has capitals needs a view without them "
    '(CREATE VIEW wards AS SELECT * FROM "Wards")'
)
LONGEST_NAME = 63  # bytes; PostgreSQL cuts longer names
SEARCH_PATH = re.compile(r"-c\s*search_path=(\S+)")


class PostgresDatabase(ServerDatabase):
    """One PostgreSQL database."""

    dialect = "postgres"
    driver = "postgresql+psycopg"
    ending = "SELECT pg_terminate_backend({})"
    run_options = MappingProxyType({"prepare": True})

    def __init__(self, url: URL) -> None:
        super().__init__(url)
        ((self.schema,),) = self.ask("SELECT current_schema()")
        self.advice = f" in the schema {self.schema}; {ADVICE}"

    def driver_arguments(self, url: URL) -> dict[str, Any]:
        options = [f"-c {name}={value}" for name, value in SETTINGS["options"].items()]
        path = SEARCH_PATH.search(str(url.query.get("options", "")))
        if path:  # the URL's other options would undo those of the tool
            options.append(f"-c search_path={path[1]}")
        return SETTINGS["arguments"] | {"options": " ".join(options)}

    def read_tables(self) -> frozenset[str]:
        materialized = self._catalog(lambda found: found.get_materialized_view_names())
        foreign = self._catalog(lambda found: found.get_foreign_table_names())
        return super().read_tables().union(materialized, foreign)

    def read_once(self, statement: Statement, deadline: float, max_rows: int) -> Rows:
        self._refuse_calls_of_rows(statement)
        return super().read_once(statement, deadline, max_rows)

    def _refuse_calls_of_rows(self, statement: Statement) -> None:
        """Refuse names behind a dot that may call a function the guard does not know.

        PostgreSQL reads `t.name` as name(t) where t has no such column. A name of such a function
        is refused also where it is a column: nothing here resolves names as PostgreSQL does.
        """
        try:
            tree = sqlglot.parse_one(statement.sql, read=engine_dialect(self.dialect))
        except ParseError:
            if statement.tables:
                raise errors.StatementError("the statement cannot be read") from None
            return  # PostgreSQL says in its own words what is wrong
        forbidden = self._functions_of_one
        if tree.find(exp.Join):
            forbidden = forbidden.union(COLLECTING["postgres"])
        for node in tree.find_all(exp.Dot, exp.Column):
            if isinstance(node, exp.Column) and not node.table:
                continue
            name = node.expression.name if isinstance(node, exp.Dot) else node.name
            said = name.encode()[:LONGEST_NAME].decode(errors="ignore")
            if forbidden.intersection((said, said.lower())):
                raise errors.StatementError(f"column {name} does not exist")

    @cached_property
    def _functions_of_one(self) -> frozenset[str]:
        names = {name for (name,) in self.ask(SETTINGS["of_one"])}
        return frozenset(names - FUNCTIONS["postgres"])

    def prepare(self, connection: Any) -> None:
        connection.autocommit = True  # `begin` begins transactions, with their time-out

    def begin(self, cursor: Any, seconds: float) -> None:
        cursor.execute(f"BEGIN READ ONLY; {_timeout(seconds)}", prepare=False)

    def set_deadline(self, cursor: Any, seconds: float) -> None:
        cursor.execute(_timeout(seconds), prepare=False)

    def compile(self, cursor: Any, sql: str) -> None:
        parsed = cursor.connection.pgconn.prepare(b"", sql.encode())
        if parsed.status != ExecStatus.COMMAND_OK:
            raise error_from_result(parsed)

    def describe(self, cursor: Any, sql: str) -> Columns:
        self._run(cursor, f"SELECT * FROM ({sql}) AS described LIMIT 0")
        return [
            (column.name, column.type_code not in SETTINGS["short_types"])
            for column in cursor.description
        ]

    def first_cut(
        self, cursor: Any, sql: str, columns: Columns, max_rows: int, kept: int
    ) -> list[tuple[Any, ...]]:
        cells = []
        for number, (_, long) in enumerate(columns):
            name = f"c{number}"
            cells.append(f"left(CAST({name} AS text), {kept})" if long else name)
        shown = f"WITH shown({names_of(columns)}) AS ({sql}) SELECT {', '.join(cells)} FROM shown"
        return self._run(cursor, f"{shown} LIMIT {max_rows}")

    def clean(self, connection: Any) -> None:
        super().clean(connection)
        connection.execute("DISCARD ALL", prepare=False)

    def line(self, connection: Any) -> tuple[int, int]:
        return connection.fileno(), connection.info.backend_pid

    def excess(self, tables: frozenset[str]) -> set[str]:
        return {name for (name,) in self.ask(SETTINGS["excess"], sorted(tables))}

    def explain(self, error: Exception, connection: Any) -> Exception:
        if not isinstance(error, psycopg.Error):
            return error
        state = error.sqlstate or ""
        if connection.closed or connection.broken:
            return self._broken(error)
        if state == SETTINGS["canceled"]:
            return errors.DeadlineExceeded(str(error))
        for kind, states in MACHINE.items():
            if state.startswith(states):
                return self._broken(error, kind)
        said = error.diag.message_primary or str(error).splitlines()[0]
        return (
            errors.SyntaxRefused(said)
            if state == SETTINGS["syntax"]
            else errors.StatementError(said)
        )


def _timeout(seconds: float) -> str:
    """Bound the next statement's time and reseed random(), so that runs repeat.

    A lock has to show before the time is over, or it would look like a slow statement.
    """
    limit = max(2, int(seconds * 1000))
    return (
        f"SET LOCAL statement_timeout = {limit}; SET LOCAL lock_timeout = {limit // 2}; "
        "SELECT setseed(0)"
    )
