"""Read a foreign table row by row: CSV, TSV, Excel, JSON, JSONL, Parquet or a table of another
database.

Memory holds one batch (for Excel also the workbook's list of texts). Rows are numbered as people
see them: in CSV, TSV and Excel from the top of the sheet, in JSONL a row is a
line, elsewhere the first row is 1.

    from sql_agent.intake.sources import open_parts
    for part in open_parts("drugs.csv"):
        for record in part.records(): ...
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import islice, starmap
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from zipfile import ZipFile

from data.json_rows import (
    LIST,
    as_record,
    line_records,
    list_records,
    paths_of_lists,
)
from data.parquet import BATCH, parquet_records
from data.records import Record, SourceError, detect_encoding, refusing
from sql_agent.intake.cells import CellError
from sql_agent.intake.grid import SEARCHED, Part, below_headers, column_names
from sql_agent.intake.headers import is_known

if TYPE_CHECKING:
    from sqlalchemy import Engine, Table

WITH_HEADERS = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm")
TEXTS = (*WITH_HEADERS[:3], ".json", ".jsonl", ".ndjson")
MOST_MERGED = 32 * 1024 * 1024  # bytes of sheets with merged cells
MAX_CELL = 16 * 1024 * 1024
DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
DELIMITERS = ",\t;|"


def open_parts(
    source: str, encoding: str | None = None, name: str | None = None, header_row: int | None = None
) -> list[Part]:
    """Return the tables of a source: one of a text or Parquet file, each sheet of a workbook, each
    table of a database.

    `encoding` overrides the detection (text files only), `header_row` that of the row of column
    names, from 1 (CSV, TSV and Excel only); `name` keeps only the sheet or table of that name.

    Raises:
        SourceError: no such file, an unknown kind, unreadable content, or no part of that name;
            reading rows may too.
    """
    path = Path(source)
    expected = f"expected a file ({', '.join(FILES)}) or a database URL"
    if "://" in source:
        kind, read = DATABASE
    elif not path.is_file():
        raise SourceError(
            f"{path} {'is a folder' if path.is_dir() else 'does not exist'}; {expected}"
        )
    elif path.suffix.lower() in FILES:
        kind, read = FILES[path.suffix.lower()]
    else:
        raise SourceError(f"{path} is of an unknown kind; {expected}")
    if header_row and path.suffix.lower() not in WITH_HEADERS:
        raise SourceError(
            f"--header-row is for {', '.join(WITH_HEADERS)}; the columns of this source are named"
        )
    what = f"{re.sub(r'//.*@', '//***@', source)} cannot be read as {kind}"
    with refusing(what):
        parts = read(source, encoding, *([header_row] if header_row else []))
    chosen = [part for part in parts if name in (None, part.name)]
    if not chosen:
        raise SourceError(
            f"no part {name!r} in the source; it has: {', '.join(part.name for part in parts)}"
        )
    return [part._replace(records=partial(_guarded, part.records, what)) for part in chosen]


def _guarded(records: Callable[[], Iterator[Record]], what: str) -> Iterator[Record]:
    with refusing(what):
        yield from records()


def encoding_note(source: str, encoding: str | None = None) -> str:
    """Return a line about how a text file is read where that was a guess; "" for UTF-8, for other
    kinds of files, and where `encoding` was given.

    GB18030 decodes nearly any text of another encoding into wrong characters, without an error.
    """
    path = Path(source)
    if encoding or not path.is_file() or path.suffix.lower() not in TEXTS:
        return ""
    chosen = detect_encoding(path)
    if chosen != "gb18030":
        return ""
    return (
        f"{path} is no UTF-8 and is read as GB18030; if names "
        "look wrong, give --encoding big5 or --encoding latin-1"
    )


def _csv_parts(source: str, encoding: str | None, header_row: int | None = None) -> list[Part]:
    path = Path(source)
    encoding = encoding or detect_encoding(path)
    csv.field_size_limit(MAX_CELL)
    with path.open(encoding=encoding, newline="") as file:
        lines = islice(file, SEARCHED)  # a title above the header has no delimiter in it
        head = next((line for line in lines if any(map(line.count, DELIMITERS))), "")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(DELIMITERS, key=head.count)

    def rows() -> Iterator[list[Any]]:
        with path.open(encoding=encoding, newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            try:
                yield from reader
            except csv.Error as error:
                raise ValueError(
                    f"near line {reader.line_num}: {error}; is a quotation mark left open?"
                ) from None

    return below_headers({path.stem: rows}, header_row)


def _excel_parts(source: str, _: str | None, header_row: int | None = None) -> list[Part]:
    from openpyxl import load_workbook

    merged = _has_merged_cells(Path(source))

    def rows(sheet: str) -> Iterator[list[Any]]:
        width = 0
        with closing(load_workbook(source, read_only=not merged, data_only=True)) as book:
            filled = _filled_down(book[sheet]) if merged else {}
            for number, row in enumerate(book[sheet].iter_rows(), start=1):
                width = max(width, len(row))
                values = map(_excel_value, row)
                cells = [filled.get((number, at), value) for at, value in enumerate(values, 1)]
                yield [*cells, *[None] * (width - len(row))]

    with closing(load_workbook(source, read_only=True)) as book:
        return below_headers(
            {sheet.title: partial(rows, sheet.title) for sheet in book.worksheets}, header_row
        )


def _has_merged_cells(path: Path) -> bool:
    """Return whether a sheet has merged cells, for which the whole workbook has to be in memory.

    Raises ValueError: it has, and is too large for that.
    """
    with ZipFile(path) as package:
        sheets = [name for name in package.namelist() if name.startswith("xl/worksheets/")]
        found = any(b"<mergeCell " in package.read(name) for name in sheets)
        size = sum(package.getinfo(name).file_size for name in sheets)
    if found and size > MOST_MERGED:
        raise ValueError(
            f"it has merged cells, and {size >> 20} MB of sheets are too many to undo that; "
            "unmerge the cells, or save the sheet as CSV"
        )
    return found


def _filled_down(sheet: Any) -> dict[tuple[int, int], Any]:
    """Return the value of each cell, by row and column from 1, that a merge from above covers.
    Names of columns stay where they are.
    """
    filled = {}
    for cells in sheet.merged_cells.ranges:
        value = _excel_value(sheet.cell(cells.min_row, cells.min_col))
        if not (isinstance(value, str) and is_known(value.strip())):
            for row in range(cells.min_row + 1, cells.max_row + 1):
                filled[row, cells.min_col] = value
    return filled


def _excel_value(cell: Any) -> Any:
    """Return the value of a cell; for a formula, the value stored with it."""
    return (
        CellError(f"the formula failed with {cell.value}") if cell.data_type == "e" else cell.value
    )


def _json_parts(
    read: Callable[[IO[str]], Iterator[Record]], source: str, encoding: str | None
) -> list[Part]:
    path = Path(source)
    encoding = encoding or detect_encoding(path)

    def records() -> Iterator[Record]:
        with path.open(encoding=encoding, newline="") as file:
            yield from read(file)

    # Objects may have different keys
    columns = dict.fromkeys(key for record in records() for key in record.values)
    if not columns:
        raise ValueError(
            "no JSON objects with keys; expected a list of objects (.jsonl: one a line)"
        )
    return [Part(path.stem, list(columns), records)]


def _json_lists(source: str, encoding: str | None) -> list[Part]:
    """Return the lists of objects in a JSON file: the file itself, or each list in it, named by its
    path (`data.drugs`).
    """
    path = Path(source)
    encoding = encoding or detect_encoding(path)
    with path.open(encoding=encoding, newline="") as file:
        lists = paths_of_lists(file)
    if not lists or lists == [LIST]:
        return _json_parts(partial(list_records, LIST), source, encoding)
    return [
        _json_parts(partial(list_records, place), source, encoding)[0]._replace(
            name=place.removesuffix(f".{LIST}")
        )
        for place in lists
    ]


def _parquet_parts(source: str, _: str | None) -> list[Part]:
    from pyarrow.parquet import read_schema

    return [
        Part(
            Path(source).stem,
            column_names(read_schema(source).names),
            partial(parquet_records, source),
        )
    ]


def database_parts(source: str, _: str | None = None, views: bool = False) -> list[Part]:
    """Return the tables, and views if wanted, of the database at a URL; a URL without a driver gets
    the installed one.

    Raises:
        SQLAlchemyError, ImportError: it cannot be reached or read, or the driver is missing.
        ValueError: it has no tables.
    """
    from sqlalchemy import MetaData, create_engine, make_url

    url = make_url(source)
    if url.get_backend_name() == "sqlite":
        url = make_url(f"sqlite:///file:{Path(str(url.database)).resolve()}?mode=ro&uri=true")
    engine = create_engine(url.set(drivername=DRIVERS.get(url.drivername, url.drivername)))
    found = MetaData()
    found.reflect(engine, views=views)
    if not found.tables:
        raise ValueError("it has no tables")
    tables = found.sorted_tables
    return [
        Part(table.name, table.columns.keys(), partial(_table_records, engine, table))
        for table in tables
    ]


def _table_records(engine: Engine, table: Table) -> Iterator[Record]:
    """Yield a table's rows in the order of its key."""
    from sqlalchemy import select

    order = list(table.primary_key.columns) or list(table.columns)
    with engine.connect() as connection:
        rows = connection.execution_options(yield_per=BATCH).execute(select(table).order_by(*order))
        yield from starmap(as_record, enumerate(map(dict, rows.mappings()), start=1))


Reader = Callable[..., list[Part]]
DATABASE: tuple[str, Reader] = ("a database", database_parts)
FILES: dict[str, tuple[str, Reader]] = {
    **dict.fromkeys(WITH_HEADERS[:3], ("a table in text", _csv_parts)),
    **dict.fromkeys(WITH_HEADERS[3:], ("an Excel workbook (.xlsx)", _excel_parts)),
    ".json": ("a list of JSON objects", _json_lists),
    **dict.fromkeys((".jsonl", ".ndjson"), ("lines of JSON", partial(_json_parts, line_records))),
    ".parquet": ("Parquet", _parquet_parts),
}
