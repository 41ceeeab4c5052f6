"""Write staged rows into the medical database, SQLite, PostgreSQL or MySQL/MariaDB: all of them or none.

from data.intake.target import Target, TargetError
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.database.schema import TABLES, metadata
from data.intake.staging import StagedRow

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

BATCH = 1_000
ENGINES = {"sqlite": "sqlite:///FILE", "postgresql": "postgresql+psycopg://", "mysql": "mysql+pymysql://"}
REPLACE, APPEND = "replace", "append"


class TargetError(RuntimeError):
    """The target can not be written as asked; it is as it was before."""


class Target:
    """The database rows go to.

    `mode` is REPLACE, APPEND or None: rows that are there already are deleted, kept, or a reason to refuse.

    Raises:
        TargetError: not a URL of a supported database, or its driver is missing.
    """

    def __init__(self, url: str, mode: str | None = None) -> None:
        from sqlalchemy import create_engine, make_url
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError

        try:
            self.url = make_url(url)
            backend = self.url.get_backend_name().replace("mariadb", "mysql")
            if backend not in ENGINES or (backend == "sqlite" and _is_no_file(self.url.database)):
                raise TargetError(f"--to {self.name}: expected one of {', '.join(ENGINES.values())}")
            self.engine: Engine = create_engine(self.url)
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            raise TargetError(f"--to is not a database URL that can be used here: {error}") from None
        self.mode = mode
        self.file = Path(str(self.url.database)).resolve() if backend == "sqlite" else None
        if self.file is not None:
            _let_sqlalchemy_begin(self.engine)

    @property
    def name(self) -> str:
        """The URL without its password."""
        return self.url.render_as_string(hide_password=True)

    def check(self, tables: Iterable[str]) -> None:
        """Look before anything is read: reachable, columns present, and empty unless replacing or appending.

        Raises:
            TargetError: one of these does not hold.
        """
        from sqlalchemy.exc import SQLAlchemyError

        if self.file is not None and not self.file.exists():
            if not self.file.parent.is_dir():
                raise TargetError(f"{self.name}: the folder {self.file.parent} does not exist")
            return
        try:
            with self.engine.connect() as connection:
                for table in tables:
                    self._check_table(connection, table)
        except SQLAlchemyError as error:
            raise TargetError(f"{self.name}: {_first_line(error)}") from None

    def write(self, rows: Mapping[str, Iterable[StagedRow]], label: str) -> dict[str, int]:
        """Put all rows into their tables in one transaction; returns the number written by table.

        `label` fills the column `source` of rows that bring none.

        Raises:
            TargetError: anything went wrong; nothing was written. (MySQL keeps empty tables it had to create.)
        """
        from sqlalchemy.exc import SQLAlchemyError

        schema = metadata()
        new_file = self.file is not None and not self.file.exists()
        try:
            with self.engine.begin() as connection:
                schema.create_all(connection, tables=[schema.tables[name] for name in rows])
                counts = {}
                for name, part in rows.items():
                    self._check_table(connection, name)
                    counts[name] = self._fill(connection, schema.tables[name], part, label)
            return counts
        except BaseException as error:
            self.engine.dispose()
            if new_file and self.file is not None:
                self.file.unlink(missing_ok=True)
            if isinstance(error, SQLAlchemyError):
                raise TargetError(f"{self.name}: nothing written: {_first_line(error)}") from None
            raise

    def _check_table(self, connection: Connection, name: str) -> None:
        from sqlalchemy import inspect

        inspector = inspect(connection)
        if not inspector.has_table(name):
            return
        missing = TABLES[name].keys() - {column["name"] for column in inspector.get_columns(name)}
        if missing:
            raise TargetError(
                f"{self.name}: the table {name} lacks the columns {', '.join(sorted(missing))}; "
                "add them as text (ALTER TABLE ... ADD COLUMN), or import into another database"
            )
        if self.mode is None and connection.exec_driver_sql(f"SELECT 1 FROM {name} LIMIT 1").first():
            raise TargetError(f"{self.name}: the table {name} has rows; give --replace or --append")

    def _fill(self, connection: Connection, table: Table, rows: Iterable[StagedRow], label: str) -> int:
        from sqlalchemy import func, select

        if self.mode == REPLACE:
            connection.execute(table.delete())
        last = connection.scalar(select(func.max(table.c.id))) or 0
        written = 0
        complete = _with_keys(rows, last, keep=self.mode != APPEND)
        while batch := list(islice(complete, BATCH)):
            empty: dict[str, Any] = dict.fromkeys(TABLES[table.name])
            connection.execute(
                table.insert(), [empty | {"source": label} | row.cells | {"id": key} for key, row in batch]
            )
            written += len(batch)
        return written


def _is_no_file(database: str | None) -> bool:
    return not database or database.startswith((":memory:", "file:"))


def _with_keys(rows: Iterable[StagedRow], last: int, keep: bool) -> Iterator[tuple[int, StagedRow]]:
    """Each row with its own key where keys are kept and the source has them, else the next number after `last`."""
    source = iter(rows)
    first = next(source, None)
    if first is None:
        return
    own = keep and first.key is not None
    for number, row in enumerate(chain([first], source), start=last + 1):
        yield (row.key if own and row.key is not None else number), row


def _let_sqlalchemy_begin(engine: Engine) -> None:
    """Make CREATE TABLE part of the transaction: the sqlite3 module would not begin one for it."""
    from sqlalchemy import event

    @event.listens_for(engine, "connect")
    def leave_it_to_us(connection: Any, _record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _first_line(error: Exception) -> str:
    return (str(getattr(error, "orig", None) or error).splitlines() or [type(error).__name__])[0]
