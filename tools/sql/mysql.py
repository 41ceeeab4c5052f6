"""MySQL and MariaDB through PyMySQL: read-only transaction, server time-out, then KILL."""

import logging
import re
from functools import lru_cache
from typing import Any

import pymysql
import sqlglot
from pymysql.constants import FIELD_TYPE
from pymysql.cursors import SSCursor
from sqlalchemy import URL
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tools.sql import errors
from tools.sql.database import ENGINES
from tools.sql.server import GRACE, Columns, ServerDatabase

LOG = logging.getLogger(__name__)
SETTINGS = ENGINES["mysql"]
# GRANT right ON place TO account, or GRANT role TO account. The account is not captured, because
# its password may follow.
GRANT = re.compile(r"GRANT (.+?)(?: ON (\S+))? TO ")
SEEDS = "rand_seed1 = 305419896, rand_seed2 = 591751049"
SHORT_TYPES = {getattr(FIELD_TYPE, name) for name in SETTINGS["short_types"]}


class MysqlDatabase(ServerDatabase):
    """One MySQL or MariaDB database."""

    dialect = "mariadb"
    driver = "mysql+pymysql"
    ending = "KILL {}"
    seeds = SEEDS
    advice = "; a table whose name has capitals needs a view without them"

    def __init__(self, url: URL) -> None:
        if not url.database:
            raise errors.DatabaseError(
                "DATABASE_URL names no database; write it like mysql://USER:PASSWORD@HOST/DATABASE"
            )
        super().__init__(url)
        self.schema = url.database

    def driver_arguments(self, url: URL) -> dict[str, Any]:
        # PyMySQL would write a text in Latin-1, which has no Chinese
        secret = {"password": str(url.password).encode()} if url.password else {}
        return SETTINGS["arguments"] | secret

    def prepare(self, connection: Any) -> None:
        # Of other types the server's own text is shown: no Python type has 838:59:59 or 0000-00-00
        read = connection.decoders.items()
        connection.decoders = {kind: reader for kind, reader in read if kind in SHORT_TYPES}
        connection.decoders[FIELD_TYPE.BIT] = int.from_bytes  # so that BIT(1) shows as 0 or 1
        with connection.cursor() as cursor:
            for name, value in SETTINGS["session"].items():
                try:
                    cursor.execute(f"SET SESSION {name} = {value}")
                except pymysql.MySQLError as error:
                    if error.args[0] != SETTINGS["unknown_variable"]:
                        raise
            try:
                cursor.execute(f"SET SESSION {SEEDS}")
            except pymysql.MySQLError as error:  # a server may keep them for administrators
                self.seeds = ""
                LOG.warning("RAND() differs from call to call on %s: %s", self.label, error)

    def begin(self, cursor: Any, seconds: float) -> None:
        # The server measures waits for locks in whole seconds. A lock has to show before the time
        # is over, or it would look like a slow statement.
        self.set_deadline(cursor, seconds + GRACE)
        cursor.execute("START TRANSACTION READ ONLY")

    def set_deadline(self, cursor: Any, seconds: float) -> None:
        if "MariaDB" in cursor.connection.get_server_info():
            deadline = f"max_statement_time = {seconds:.3f}"
        else:
            deadline = f"max_execution_time = {seconds * 1000:.0f}"
        # RAND() begins anew, so that the same statement gives the same rows
        cursor.execute(f"SET SESSION {', '.join(filter(None, (deadline, self.seeds)))}")

    def compile(self, cursor: Any, sql: str) -> None:
        cursor.execute("PREPARE written FROM %s", (sql,))
        cursor.execute("DEALLOCATE PREPARE written")

    def describe(self, cursor: Any, sql: str) -> Columns:
        cursor.execute(self.limited(sql, 0))
        return [(column[0], column[1] not in SHORT_TYPES) for column in cursor.description]

    def first_cut(
        self, cursor: Any, sql: str, columns: Columns, max_rows: int, kept: int
    ) -> list[tuple[Any, ...]]:
        # Not cut by a statement around it: MariaDB forgets the order of a subquery with long texts.
        # A row is no longer than the server's max_allowed_packet
        with cursor.connection.cursor(SSCursor) as stream:
            stream.execute(self.limited(sql, max_rows))
            return [_cut(row, kept) for row in stream]

    @staticmethod
    @lru_cache(maxsize=256)
    def limited(sql: str, rows: int) -> str:
        """Return the guard's text with a limit of rows."""
        try:
            tree = sqlglot.parse_one(sql, read="mariadb")
        # The guard read the statement, but may have written what sqlglot cannot read
        except (SqlglotError, ValueError, AttributeError) as error:
            raise errors.StatementError(f"syntax error near: {sql[:60]}") from error
        limit = tree.args.get("limit")
        if limit is not None:
            rows = min(rows, int(limit.expression.name))
        tree.set("limit", exp.Limit(expression=exp.Literal.number(rows)))
        return tree.sql(dialect="mariadb", comments=False)

    def line(self, connection: Any) -> tuple[int, int]:
        return connection._sock.fileno(), connection.thread_id()

    def excess(self, tables: frozenset[str]) -> set[str]:
        found = set()
        for (text,) in self.ask("SHOW GRANTS"):
            grant = GRANT.match(text)
            if grant and grant[1] != "USAGE":
                found.add(f"{grant[1]} {grant[2] or ''}".strip())
        return found - {f"SELECT `{self._url.database}`.`{table}`" for table in tables}

    def explain(self, error: Exception, connection: Any) -> Exception:
        if not isinstance(error, pymysql.MySQLError):
            return error
        code = error.args[0] if error.args else 0
        if code in SETTINGS["out_of_time"]:
            return errors.DeadlineExceeded(str(error))
        if code in (*SETTINGS["repeatable"], *SETTINGS["lost"]) or not connection.open:
            return self._broken(error, errors.ConnectionLost)
        if code in SETTINGS["exhausted"]:
            return self._broken(error, errors.Exhausted)
        if code in SETTINGS["machine"]:
            return self._broken(error, errors.DatabaseError)
        said = str(error.args[-1])
        return (
            errors.SyntaxRefused(said)
            if code in SETTINGS["syntax"]
            else errors.StatementError(said)
        )


def _cut(row: tuple[Any, ...], kept: int) -> tuple[Any, ...]:
    return tuple(cell[:kept] if isinstance(cell, (str, bytes)) else cell for cell in row)
