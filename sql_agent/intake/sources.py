"""Reads a foreign table row by row: text, workbook, JSON, Parquet or another database.

Rows count from the top of a sheet, by lines in JSONL, and elsewhere from 1.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, starmap
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from common.language import said
from data.files import json_places, open_text
from data.json_rows import LIST, line_records, list_records, object_records
from data.parquet import BATCH, parquet_records
from data.records import MARKS, Record, SourceError, as_record, detect_encoding, refusing
from sql_agent.intake.grid import SEARCHED, Part, Row, Rows, below_headers, column_names
from sql_agent.intake.headers import is_known
from sql_agent.intake.kinds import other_kind
from sql_agent.intake.workbooks import KINDS as WORKBOOKS
from sql_agent.intake.workbooks import read_workbook
from tools.sql.database import PERCENT, has_bare_at

if TYPE_CHECKING:
    from sqlalchemy import Engine, Table

TABLES_IN_TEXT = (".csv", ".tsv", ".txt")
WITH_HEADERS = (*TABLES_IN_TEXT, *WORKBOOKS)
JSON = (".json", ".jsonl", ".ndjson")
FILES = (*WITH_HEADERS, *JSON, ".parquet")
MAX_CELL = 16 * 1024 * 1024
DELIMITERS = ",\t;|，^~\x01、"
TOLD = re.compile(r'"?sep=(.)"?\s*')  # the first line by which a spreadsheet tells a delimiter
QUOTED = re.compile(r"'[^']*'(\W'[^']*')*\s*")  # a line of names in single quotation marks
DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}


def open_parts(
    source: str, encoding: str | None = None, name: str | None = None, header_row: int | None = None
) -> list[Part]:
    """Return the tables of a source: sheets of a workbook, lists of JSON, tables of a database.

    encoding: overrides the detection in text files. header_row: row of column names, from 1 (CSV,
    TSV, workbooks). name: keep only this sheet, list or table. Raises SourceError, also while rows
    are read: no such file or part, an unknown kind, or unreadable content.
    """
    path = Path(source)
    kind = "a database"
    if "://" not in source:
        kind = path.suffix.lower()
        expected = f"expected a file ({', '.join(FILES)}) or a database URL"
        if not path.is_file():
            seen = "is a folder" if path.is_dir() else "does not exist"
            raise SourceError(f"{path} {seen}; {expected}")
        if other := other_kind(path):
            raise SourceError(f"{path} is {other}")
        if kind not in FILES:
            raise SourceError(f"{path} is of an unknown kind; {expected}")
    if header_row and kind not in WITH_HEADERS:
        raise SourceError(
            "--header-row is for tables in text and workbooks; the columns of this source are named"
        )
    what = f"{re.sub(r'//.*@', '//***@', source)} cannot be read as {kind}"
    with refusing(what):
        if kind == "a database":
            parts = database_parts(source)
        elif kind in TABLES_IN_TEXT:
            rows = _text_rows(path, encoding or detect_encoding(path))
            parts = below_headers({path.stem: rows}, header_row)
        elif kind in WORKBOOKS:
            sheets, hidden = read_workbook(path)
            found = below_headers(sheets, header_row)
            parts = [part._replace(is_hidden=part.name in hidden) for part in found]
        elif kind in JSON:
            parts = _json_parts(path, encoding or detect_encoding(path))
        else:
            from pyarrow.parquet import read_schema

            columns = column_names(read_schema(path).names)
            parts = [Part(path.stem, columns, partial(parquet_records, path))]
    chosen = [part for part in parts if name in (None, part.name)]
    if not chosen:
        names = ", ".join(part.name for part in parts)
        raise SourceError(f"no part {name!r} in the source; it has: {names}")
    return [part._replace(records=partial(_guarded, part.records, what)) for part in chosen]


def _guarded(records: Callable[[], Iterator[Record]], what: str) -> Iterator[Record]:
    with refusing(what):
        yield from records()


def encoding_note(source: str, encoding: str | None = None) -> str:
    """Return a line about the encoding of a text file if it was guessed, or ""."""
    path = Path(source)
    if encoding or not path.is_file() or path.suffix.lower() not in (*TABLES_IN_TEXT, *JSON):
        return ""
    chosen = detect_encoding(path)
    if chosen in ("utf-8", *MARKS.values()):
        return ""
    seen = (
        "{path} is not UTF-8 and is read as {encoding}; if names look wrong, give --encoding, such as "
        "gb18030, big5 or latin-1"
    )
    return said(seen, path=path, encoding=chosen.upper())


def _text_rows(path: Path, encoding: str) -> Rows:
    csv.field_size_limit(MAX_CELL)
    with open_text(path, encoding) as file:
        lines = list(islice(file, 100))
    told = TOLD.fullmatch(lines[0]) if lines else None
    quote = "'" if any(map(QUOTED.fullmatch, lines[:1])) else '"'
    delimiter = told[1] if told else _delimiter(lines, quote)

    def rows() -> Iterator[Row]:
        with open_text(path, encoding) as file:
            reader = csv.reader(file, delimiter=delimiter, quotechar=quote, strict=True)
            try:
                yield from starmap(Row, enumerate(reader, start=1))
            except csv.Error as error:
                raise ValueError(
                    f"near line {reader.line_num}: {error}; is a quotation mark left open?"
                ) from None

    return rows


def _delimiter(lines: list[str], quote: str) -> str:
    """Return the delimiter that best cuts the first rows into known names and as many cells.

    A table of one column gets a comma, which does no harm.
    """
    best = ","
    most: tuple[float, ...] = ()
    for delimiter in DELIMITERS:
        cut = csv.reader(lines, delimiter=delimiter, quotechar=quote)
        rows = list(islice(cut, SEARCHED))
        known = [sum(is_known(cell.strip()) for cell in cells) for cells in rows]
        widths = Counter(map(len, rows))
        if any(known):
            width = len(rows[known.index(max(known))])
        else:
            width = max(widths, key=lambda width: (width > 1, widths[width]), default=1)
        fit = (max(known, default=0), width > 1, widths[width] / len(rows or [0]), width)
        if fit > most:
            most = fit
            best = delimiter
    return best


def _json_parts(path: Path, encoding: str) -> list[Part]:
    places = json_places(path, encoding)
    if places is None:
        return [_json_part(path, encoding, path.stem, line_records)]
    if not places:
        return [_json_part(path, encoding, path.stem, object_records)]
    parts = []
    for place in places:
        name = path.stem if place == LIST else place.removesuffix(f".{LIST}")
        parts.append(_json_part(path, encoding, name, partial(list_records, place)))
    return parts


def _json_part(
    path: Path, encoding: str, name: str, read: Callable[[IO[str]], Iterator[Record]]
) -> Part:
    def records() -> Iterator[Record]:
        with open_text(path, encoding) as file:
            for record in read(file):
                yield record._replace(values=_flat(record.values))

    columns: dict[str, None] = {}  # objects may have different keys
    problem = ""
    for record in records():
        columns |= dict.fromkeys(record.values)
        if record.problem and not problem:
            problem = f"; row {record.number}: {record.problem}"
    if not columns:
        raise ValueError(
            "no JSON objects with keys; expected a list of objects (.jsonl: one a line)" + problem
        )
    return Part(name, list(columns), records)


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    """Return an object with the values of inner objects under names such as openfda.generic_name."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            flat |= {f"{key}.{inner}": cell for inner, cell in _flat(value).items()}
        else:
            flat[key] = value or None if isinstance(value, dict) else value
    return flat


def database_parts(source: str, views: bool = False) -> list[Part]:
    """Return the tables, and views if wanted, of the database at a URL.

    A URL without a driver gets the installed one. Raises SQLAlchemyError, ImportError: it cannot be
    read, or the driver is missing. Raises ValueError: it has no tables, or is ambiguous.
    """
    from sqlalchemy import MetaData, create_engine, make_url

    if has_bare_at(source):
        raise ValueError(PERCENT)
    url = make_url(source)
    if url.get_backend_name() == "sqlite":
        url = make_url(f"sqlite:///file:{Path(str(url.database)).resolve()}?mode=ro&uri=true")
    engine = create_engine(url.set(drivername=DRIVERS.get(url.drivername, url.drivername)))
    found = MetaData()
    found.reflect(engine, views=views)
    if not found.tables:
        raise ValueError("it has no tables")
    return [
        Part(table.name, table.columns.keys(), partial(_table_records, engine, table))
        for table in found.sorted_tables
    ]


def _table_records(engine: Engine, table: Table) -> Iterator[Record]:
    from sqlalchemy import select

    order = list(table.primary_key.columns) or list(table.columns)
    with engine.connect() as connection:
        rows = connection.execution_options(yield_per=BATCH).execute(select(table).order_by(*order))
        yield from starmap(as_record, enumerate(map(dict, rows.mappings()), start=1))
