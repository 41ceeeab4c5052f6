"""Write rows into the medical database, SQLite, PostgreSQL or MySQL/MariaDB: all of them or none.

from data.intake.target import Target, TargetError
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, MetaData, Table, create_engine, func, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from common.command import Failure, UsageError
from data.database.schema import NAME_COLUMN, TABLES, Cells, insert_rows, metadata
from data.intake.sources import DRIVERS, first_line

ENGINES = {"sqlite": "sqlite:///FILE", "postgresql": "postgresql+psycopg://", "mysql": "mysql+pymysql://"}
REPLACE, APPEND = "replace", "append"
SCRATCH = "_importing"


class TargetError(Failure):
    """The target can not be written as asked; it is as it was before."""


class Target:
    """The database rows go to.

    `mode` is REPLACE, APPEND or None: rows that are there already are deleted, kept, or a reason to refuse.

    Raises:
        UsageError: not a URL of a supported database, or its driver is missing.
    """

    def __init__(self, url: str, mode: str | None = None) -> None:
        scheme = url.partition("://")[0]
        if scheme == url:
            raise UsageError(f"--to {url!r} is no URL; for an SQLite file type --to sqlite:///{url or 'my.db'}")
        if scheme in DRIVERS:
            raise UsageError(
                f"--to {scheme}:// names no driver; type --to {DRIVERS[scheme]}://USER:PASSWORD@HOST/DATABASE"
            )
        try:
            self.engine, self.mode = create_engine(make_url(url)), mode
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            raise UsageError(f"--to is not a database URL that can be used here: {error}") from None
        self.name = self.engine.url.render_as_string()  # without its password
        self.backend = self.engine.url.get_backend_name().replace("mariadb", "mysql")
        path = self.engine.url.database or ":memory:"
        if self.backend not in ENGINES or (self.backend == "sqlite" and path.startswith((":memory:", "file:"))):
            raise UsageError(f"--to {self.name}: expected one of {', '.join(ENGINES.values())}")
        self.file = Path(path).resolve() if self.backend == "sqlite" else None

    def check(self, tables: Iterable[str]) -> None:
        """Look before anything is read: reachable, columns present, and empty unless replacing or appending.

        Raises:
            TargetError: one of these does not hold.
        """
        if self.file and not self.file.parent.is_dir():
            raise TargetError(f"{self.name}: the folder {self.file.parent} does not exist")
        if self.file and not self.file.exists():
            return
        with self._refusing(), self.engine.connect() as connection:
            for table in tables:
                self._exists(connection, table)

    def write(self, rows: Mapping[str, Iterable[Cells]], label: str) -> dict[str, int]:
        """Put all rows into their tables in one transaction; returns the number written by table.

        The other table is made too, empty, if it is not there: the tool expects both. MySQL commits whenever it makes a
        table, so a new one is filled under another name and then renamed. `label` fills the column `source` of rows
        that bring none.

        Raises:
            TargetError: anything went wrong; nothing was written.
        """
        schema, begun = metadata(), False
        try:
            with self._refusing("nothing written: "), self.engine.begin() as connection:
                if self.file:
                    connection.exec_driver_sql("BEGIN IMMEDIATE")  # the driver begins none for CREATE TABLE
                begun = True
                others = [name for name in TABLES if name not in rows and not inspect(connection).has_table(name)]
                rows = {**rows, **dict.fromkeys(others, ())}
                tables = {name: self._prepare(connection, schema.tables[name]) for name in rows}
                written = {name: self._fill(connection, tables[name], part, label) for name, part in rows.items()}
                renamed = [f"{table.name} TO {name}" for name, table in tables.items() if table.name != name]
                if renamed:
                    connection.exec_driver_sql(f"RENAME TABLE {', '.join(renamed)}")
            return written
        except BaseException:
            if begun:
                self._clean_up(TABLES)
            raise

    def _exists(self, connection: Connection, name: str) -> bool:
        inspector = inspect(connection)
        if not inspector.has_table(name):
            return False
        lacking = ", ".join(sorted(TABLES[name].keys() - {column["name"] for column in inspector.get_columns(name)}))
        if lacking:
            raise TargetError(f"{self.name}: table {name} lacks the columns {lacking}; add them (ALTER TABLE) as text")
        if self.mode is None and (count := connection.scalar(text(f"SELECT count(*) FROM {name}"))):
            raise TargetError(f"{self.name}: the table {name} has rows ({count:,}); give --replace or --append")
        return True

    def names(self, table: str) -> set[str]:
        """The names in a table; none if it is not there. Raises TargetError: they can not be read."""
        if self.file and not self.file.exists():
            return set()
        with self._refusing(), self.engine.connect() as connection:
            query = text(f"SELECT DISTINCT {NAME_COLUMN[table]} FROM {table}")
            return set(connection.scalars(query)) if inspect(connection).has_table(table) else set()

    def _prepare(self, connection: Connection, table: Table) -> Table:
        """The table to fill: the one there is, or a new one."""
        if self._exists(connection, table.name):
            return table
        if self.backend == "mysql":
            table = table.to_metadata(MetaData(), name=table.name + SCRATCH)
            table.drop(connection, checkfirst=True)  # of an import that was killed
        table.create(connection)
        return table

    def _fill(self, connection: Connection, table: Table, rows: Iterable[Cells], label: str) -> int:
        if self.mode == REPLACE:
            connection.execute(table.delete())
        last = connection.scalar(select(func.max(table.c.id))) or 0
        empty = dict.fromkeys(table.c.keys()) | {"source": label}
        numbered = enumerate(rows, start=last + 1)
        if self.mode == APPEND:
            return insert_rows(connection, table, (empty | row | {"id": number} for number, row in numbered))
        return insert_rows(connection, table, (empty | {"id": number} | row for number, row in numbered))

    def _clean_up(self, tables: Iterable[str]) -> None:
        """Remove what no rollback removes: the empty file of a new SQLite database, new tables of MySQL."""
        self.engine.dispose()
        if self.file and self.file.stat().st_size == 0:
            self.file.unlink()
        if self.backend == "mysql":
            # A server that is gone is what the first error says already; the next import drops the tables.
            with suppress(SQLAlchemyError), self.engine.begin() as connection:
                for name in tables:
                    connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}{SCRATCH}")

    @contextmanager
    def _refusing(self, what: str = "") -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise TargetError(f"{self.name}: {what}{first_line(error)}") from None
