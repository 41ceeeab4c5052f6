"""Writes all rows or none into the medical database: SQLite, PostgreSQL or MySQL/MariaDB."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Table, create_engine, func, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from common.command import Failure, UsageError
from data.records import first_line
from sql_agent.tables import TABLES, Cells, insert_rows, metadata
from tools.sql.database import PERCENT, has_bare_at
from tools.sql.settings import DEFAULT_DATABASE

ENGINES = {
    "sqlite": "sqlite:///FILE",
    "postgresql": "postgresql+psycopg://",
    "mysql": "mysql+pymysql://",
}
BUNDLED = Path(str(make_url(DEFAULT_DATABASE).database))
REPLACE = "replace"
APPEND = "append"
MISSING = "only_missing"
# Other modes of MySQL cut texts, and write "?" for a character that a column cannot hold
STRICT = "SET SESSION sql_mode = CONCAT_WS(',', @@sql_mode, 'STRICT_ALL_TABLES')"
FORGETS = (
    "SELECT count(*) FROM information_schema.tables JOIN information_schema.engines USING (engine) "
    "WHERE table_schema = DATABASE() AND table_name = :table AND transactions = 'NO'"
)


class Target:
    """The database that rows go to. Raises UsageError: URL not supported, or driver missing.

    mode: for existing rows: REPLACE, APPEND, MISSING (leave them alone), or None (refuse).
    """

    def __init__(self, url: str, mode: str | None = None) -> None:
        self.mode = mode
        if has_bare_at(url):
            raise UsageError(f"--to: {PERCENT}")
        expected = f"expected one of {', '.join(ENGINES.values())}"
        try:
            self.engine = create_engine(make_url(url))
        except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as error:
            # SQLAlchemy's ValueError is about the port, and may quote a part of the password
            why = "its port is no number" if type(error) is ValueError else first_line(error)
            problem = f"--to is not a database URL that can be used here: {why}"
            raise UsageError(f"{problem}; {expected}") from None
        self.name = self.engine.url.render_as_string()  # without its password
        backend = self.engine.url.get_backend_name().replace("mariadb", "mysql")
        path = self.engine.url.database or ":memory:"
        in_memory = backend == "sqlite" and path.startswith((":memory:", "file:"))
        if backend not in ENGINES or in_memory:
            raise UsageError(f"--to {self.name}: {expected}")
        self.is_mysql = backend == "mysql"
        self.file = Path(path).resolve() if backend == "sqlite" else None
        if self.file == BUNDLED:
            raise UsageError(
                f"--to {self.name} is the bundled database, which git keeps; name a file of your "
                "own, such as --to sqlite:///my/drugs.db (mkdir my)"
            )

    def check(self, tables: Iterable[str]) -> set[str]:
        """Return those of these tables that have rows. Raises UsageError: one may not be filled."""
        if self.file and not self.file.parent.is_dir():
            raise UsageError(f"{self.name}: the folder {self.file.parent} does not exist")
        filled: set[str] = set()
        if self.file and not self.file.exists():
            return filled
        with self._refusing(), self.engine.connect() as connection:
            for table in filter(inspect(connection).has_table, tables):
                count = connection.scalar(text(f"SELECT count(*) FROM {table}")) or 0
                if count:
                    filled.add(table)
                if count and self.mode == MISSING:
                    continue
                if self.is_mysql and connection.scalar(text(FORGETS), {"table": table}):
                    raise UsageError(
                        f"{self.name}: the engine of table {table} has no transactions, and an "
                        f"import that fails would lose rows; ALTER TABLE {table} ENGINE=InnoDB"
                    )
                there = {column["name"] for column in inspect(connection).get_columns(table)}
                if lacking := ", ".join(sorted(TABLES[table].keys() - there)):
                    raise UsageError(
                        f"{self.name}: table {table} lacks the columns {lacking}; add them (ALTER "
                        "TABLE) as text"
                    )
                if count and self.mode is None:
                    raise UsageError(
                        f"{self.name}: the table {table} has rows ({count:,}); give --replace or "
                        "--append"
                    )
        return filled

    def write(self, rows: Mapping[str, Iterable[Cells]]) -> dict[str, int]:
        """Write all rows in one transaction, and return the number written by table.

        Both tables are made first: the tool expects them, and MySQL commits when it makes a table.
        """
        ours = metadata()
        begun = False
        try:
            with self._refusing("nothing written: "), self.engine.begin() as connection:
                if self.file:
                    # The driver begins no transaction for CREATE TABLE
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                if self.is_mysql:
                    connection.exec_driver_sql(STRICT)
                begun = True
                ours.create_all(connection)
                counts = {}
                for name, part in rows.items():
                    counts[name] = self._fill(connection, ours.tables[name], part)
                return counts
        except BaseException:
            self.engine.dispose()
            if begun and self.file and self.file.stat().st_size == 0:
                self.file.unlink()  # the file of a new database, which no rollback removes
            raise

    def _fill(self, connection: Connection, table: Table, rows: Iterable[Cells]) -> int:
        if self.mode == REPLACE:
            connection.execute(table.delete())
        last = connection.scalar(select(func.max(table.c.id))) or 0
        if isinstance(last, str) or last % 1:
            problem = f"the column id of {table.name} has {last!r}, expected whole numbers"
            raise Failure(f"{self.name}: nothing written: {problem}")
        empty = dict.fromkeys(table.c.keys()) | {"source": "imported"}

        def numbered() -> Iterator[Cells]:
            for number, row in enumerate(rows, start=last + 1):
                own = number if self.mode == APPEND else row.get("id", number)
                yield empty | row | {"id": own}

        return insert_rows(connection, table, numbered())

    @contextmanager
    def _refusing(self, what: str = "") -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise Failure(f"{self.name}: {what}{first_line(error)}") from None
        except (TypeError, AttributeError) as error:  # PyMySQL's way to refuse a parameter
            if "pymysql" not in str(self.engine.url):
                raise
            raise UsageError(
                f"--to {self.name} is not understood by PyMySQL ({first_line(error)}); it takes "
                "ssl_ca=FILE, ssl_disabled=true, charset=utf8mb4, and needs the database's name"
            ) from None
