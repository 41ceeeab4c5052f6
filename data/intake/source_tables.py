"""Foreign tables with types of their own: Excel workbooks, Parquet files, other databases.

from data.intake.source_tables import database_parts, excel_parts, parquet_parts
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError

from data.intake.source_types import Part, Record, SourceError, header_row

if TYPE_CHECKING:
    from sqlalchemy import Engine, Table

BATCH = 1_000


def excel_parts(path: Path) -> list[Part]:
    """One part a sheet that has a header; formulas count as the values stored with them."""
    workbook = _workbook(path)
    names = [sheet.title for sheet in workbook.worksheets]
    workbook.close()
    parts = []
    for name in names:
        header = next((cells for _, cells in _sheet_rows(path, name)), [])
        if any(cell not in (None, "") for cell in header):
            columns = header_row(header, f"{path}, sheet {name}")
            parts.append(_excel_part(path, name, columns))
    if not parts:
        raise SourceError(f"{path} has no sheet with a header row")
    return parts


def _excel_part(path: Path, name: str, columns: list[str]) -> Part:
    done = [0]

    def records() -> Iterator[Record]:
        for number, cells in _sheet_rows(path, name):
            done[0] = number
            if number == 1:
                continue
            beyond = [cell for cell in cells[len(columns) :] if cell not in (None, "")]
            if beyond:
                yield Record(number, {}, f"{beyond[0]!r} stands to the right of the last named column")
            else:
                yield Record(
                    number, {column: cell for column, cell in zip(columns, cells, strict=False) if cell is not None}
                )

    return Part(name, columns, records, lambda: (done[0], None))


def _workbook(path: Path) -> Any:
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        return load_workbook(path, read_only=True, data_only=True)
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, OSError, ParseError) as error:
        raise SourceError(f"{path} cannot be read as an Excel workbook (.xlsx): {error}") from None


def _sheet_rows(path: Path, name: str) -> Iterator[tuple[int, list[Any]]]:
    workbook = _workbook(path)
    try:
        for number, row in enumerate(workbook[name].iter_rows(), start=1):
            # An error such as #N/A arrives as text; it is no value.
            yield number, [FormulaError(cell.value) if cell.data_type == "e" else cell.value for cell in row]
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, ParseError) as error:
        raise SourceError(f"{path}, sheet {name}, is damaged: {error}") from None
    finally:
        workbook.close()


class FormulaError:
    """The result of a formula that failed; not convertible, so that its row is rejected with its column."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def parquet_parts(path: Path) -> list[Part]:
    """The one table of a Parquet file."""
    import pyarrow.parquet as parquet
    from pyarrow import ArrowException

    try:
        with parquet.ParquetFile(path) as file:
            columns, total = header_row(file.schema_arrow.names, str(path)), file.metadata.num_rows
    except (ArrowException, OSError) as error:
        raise SourceError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    done = [0]

    def records() -> Iterator[Record]:
        try:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(BATCH):
                    for values in batch.to_pylist():
                        done[0] += 1
                        yield Record(done[0], values)
        except (ArrowException, OSError, UnicodeDecodeError) as error:
            raise SourceError(f"{path} is damaged: {str(error).splitlines()[0]}") from None

    def from_the_start() -> Iterator[Record]:
        done[0] = 0
        return records()

    return [Part(path.stem, columns, from_the_start, lambda: (done[0], total))]


def database_parts(url: str) -> list[Part]:
    """One part a table of another database, read in the order of its key."""
    from sqlalchemy import MetaData
    from sqlalchemy.exc import SQLAlchemyError

    engine = _open(url)
    found = MetaData()
    try:
        found.reflect(engine)
        if not found.tables:
            raise SourceError(f"{engine.url.render_as_string()} has no tables")
        return [_database_part(engine, table) for table in found.sorted_tables]
    except SQLAlchemyError as error:
        raise SourceError(f"cannot read {engine.url.render_as_string()}: {_first_line(error)}") from None


def _open(text: str) -> Engine:
    from sqlalchemy import create_engine, make_url
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    try:
        url = make_url(text)
        if url.get_backend_name() == "sqlite":
            if not url.database or not Path(url.database).is_file():
                raise SourceError(f"no database file {url.database!r}")
            return create_engine(f"sqlite:///file:{Path(url.database).resolve()}?mode=ro&uri=true")
        return create_engine(url)
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise SourceError(f"not a database URL that can be used here: {error}") from None


def _database_part(engine: Engine, table: Table) -> Part:
    from sqlalchemy import func, select
    from sqlalchemy.exc import SQLAlchemyError

    key = list(table.primary_key.columns)
    with engine.connect() as connection:
        total = connection.scalar(select(func.count()).select_from(table)) or 0
        last = connection.scalar(select(func.max(key[0]))) if key else None
    done = [0]

    def records() -> Iterator[Record]:
        try:
            with engine.connect() as connection:
                rows = connection.execution_options(yield_per=BATCH).execute(
                    select(table).order_by(*(key or table.columns))
                )
                for number, row in enumerate(rows.mappings(), start=1):
                    done[0] = number
                    yield Record(number, dict(row))
        except SQLAlchemyError as error:
            raise SourceError(f"cannot read {engine.url.render_as_string()}: {_first_line(error)}") from None

    return Part(table.name, list(table.columns.keys()), partial(records), lambda: (done[0], total), f"{total} {last}")


def _first_line(error: Exception) -> str:
    return (str(getattr(error, "orig", None) or error).splitlines() or [type(error).__name__])[0]
