"""Reads a foreign table row by row: text, workbook, JSON, Parquet or another database.

Rows count from the top of a sheet, by lines in JSONL, and elsewhere from 1.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy
from sqlalchemy import ColumnElement, types

from common.language import said
from data.json_rows import LINES, Rows, json_tables, open_text
from data.parquet import BATCH, parquet_records
from data.records import MARKS, Record, SourceError, detect_encoding, refusing
from sql_agent.intake.grid import SEARCHED, Part, SheetRows, below_headers, column_names
from sql_agent.intake.headers import is_known
from sql_agent.intake.kinds import other_kind
from sql_agent.intake.workbooks import KINDS as WORKBOOKS
from sql_agent.intake.workbooks import WITHOUT_FORMATS, read_workbook
from tools.sql.database import PERCENT, has_bare_at

TABLES_IN_TEXT = (".csv", ".tsv", ".txt")
WITH_HEADERS = (*TABLES_IN_TEXT, *WORKBOOKS)
JSON = (".json", *LINES)
TEXTS = (*TABLES_IN_TEXT, *JSON)
FILES = (*WITH_HEADERS, *JSON, ".parquet")
MAX_CELL = 16 * 1024 * 1024
# Of equals the first: a comma does a table of one column no harm
DELIMITERS = ",\t;|，；｜^~\x01、"
TOLD = re.compile(r'"?sep=(.)"?\s*')  # the first line by which a spreadsheet tells a delimiter
QUOTED = re.compile(r"'[^']*'(\W'[^']*')*\s*")  # a line of names in single quotation marks
GUESSED = (
    "{path} is not UTF-8 and is read as {encoding}; if names look wrong, give --encoding, such as "
    "gb18030, big5 or latin-1"
)
NO_FORMATS = (
    "{source} is read without the formats of its numbers (0.9% is 0.009, and 007 is 7); failed formulas "
    "(#N/A) and, but for .xls, all rows of a merged cell after its first are empty. Save it as .xlsx to "
    "keep what it shows"
)
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
    kind = "a database" if "://" in source else _kind_of(path)
    if header_row and kind not in WITH_HEADERS:
        raise SourceError(
            "--header-row is for tables in text and workbooks; the columns of this source are named"
        )
    what = f"{re.sub(r'//.*@', '//***@', source)} cannot be read as {kind}"
    with refusing(what):
        note = said(NO_FORMATS, source=source) if kind in WITHOUT_FORMATS else ""
        if kind in TEXTS and not encoding:
            encoding = detect_encoding(path)
            if encoding not in ("utf-8", *MARKS.values()):
                note = said(GUESSED, path=path, encoding=encoding.upper())
        parts = _parts(source, kind, encoding or "", header_row)
    chosen = [part for part in parts if name in (None, part.name)]
    if not chosen:
        names = ", ".join(part.name for part in parts)
        raise SourceError(f"no part {name!r} in the source; it has: {names}")
    return [
        part._replace(records=partial(_guarded, part.records, what), note=note) for part in chosen
    ]


def _kind_of(path: Path) -> str:
    expected = f"expected a file ({', '.join(FILES)}) or a database URL"
    if not path.is_file():
        seen = "is a folder" if path.is_dir() else "does not exist"
        raise SourceError(f"{path} {seen}; {expected}")
    if other := other_kind(path):
        raise SourceError(f"{path} is {other}")
    kind = path.suffix.lower()
    if kind not in FILES:
        raise SourceError(f"{path} is of an unknown kind; {expected}")
    return kind


def _parts(source: str, kind: str, encoding: str, header_row: int | None) -> list[Part]:
    path = Path(source)
    if kind in TABLES_IN_TEXT:
        return below_headers({path.stem: _text_rows(path, encoding)}, header_row)
    if kind in WORKBOOKS:
        sheets, hidden = read_workbook(path)
        found = below_headers(sheets, header_row)
        return [part._replace(is_hidden=part.name in hidden) for part in found]
    if kind in JSON:
        tables = json_tables(path, encoding)
        return [_json_part(place or path.stem, rows) for place, rows in tables.items()]
    if kind == ".parquet":
        from pyarrow.parquet import read_schema

        columns = column_names(read_schema(path).names)
        return [Part(path.stem, columns, partial(parquet_records, path, columns))]
    return database_parts(source)


def _guarded(records: Rows, what: str) -> Iterator[Record]:
    with refusing(what):
        yield from records()


def _text_rows(path: Path, encoding: str) -> SheetRows:
    csv.field_size_limit(MAX_CELL)
    with open_text(path, encoding) as file:
        lines = list(islice(file, 100))
    told = TOLD.fullmatch(lines[0]) if lines else None
    quote = "'" if any(map(QUOTED.fullmatch, lines[:1])) else '"'
    delimiter = told[1] if told else max(DELIMITERS, key=lambda sign: _fit(lines, sign, quote))

    def rows() -> Iterator[list[str]]:
        with open_text(path, encoding) as file:
            reader = csv.reader(file, delimiter=delimiter, quotechar=quote, strict=True)
            try:
                yield from reader
            except csv.Error as error:
                raise ValueError(
                    f"near line {reader.line_num}: {error}; is a quotation mark left open?"
                ) from None

    return rows


def _fit(lines: list[str], delimiter: str, quote: str) -> tuple[float, ...]:
    """Return how well a delimiter cuts the first rows into known names and as many cells."""
    rows = list(islice(csv.reader(lines, delimiter=delimiter, quotechar=quote), SEARCHED))
    known = [sum(map(_is_name, cells)) for cells in rows]
    widths = Counter(map(len, rows))
    if any(known):
        width = len(rows[known.index(max(known))])
    else:
        width = max(widths, key=lambda width: (width > 1, widths[width]), default=1)
    return (max(known, default=0), width > 1, widths[width] / len(rows or [0]), width)


def _is_name(cell: str) -> bool:
    """Return whether a cell is a known name, and not one of those that `\t,` divides cut at a tab."""
    text = cell.strip()
    return is_known(text) and text == text.strip(DELIMITERS)


def _json_part(name: str, rows: Rows) -> Part:
    def records() -> Iterator[Record]:
        for record in rows():
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
            flat[key] = None if value == {} else value
    return flat


def database_parts(source: str, views: bool = False) -> list[Part]:
    """Return the tables, and views if wanted, of the database at a URL.

    A URL without a driver gets the installed one. Raises SQLAlchemyError, ImportError: it cannot be
    read, or the driver is missing. Raises ValueError: it has no tables, or is ambiguous.
    """
    if has_bare_at(source):
        raise ValueError(PERCENT)
    url = sqlalchemy.make_url(source)
    if url.get_backend_name() == "sqlite":
        file = f"file:{quote(str(Path(str(url.database)).resolve()))}"
        url = url.set(database=file, query={"mode": "ro", "uri": "true"})
    driver = DRIVERS.get(url.drivername, url.drivername)
    engine = sqlalchemy.create_engine(url.set(drivername=driver))
    found = sqlalchemy.MetaData()
    found.reflect(engine, views=views, resolve_fks=False)
    if not found.tables:
        raise ValueError("it has no tables")
    parts = []
    for table in found.tables.values():
        parts.append(Part(table.name, table.columns.keys(), partial(_records, engine, table)))
    return parts


def _records(engine: sqlalchemy.Engine, table: sqlalchemy.Table) -> Iterator[Record]:
    is_postgres = engine.name == "postgresql"
    selected = [_as_stored(column, engine.name == "sqlite") for column in table.columns]
    order = list[ColumnElement[Any]](table.primary_key.columns)
    for column in () if order else table.columns:
        # PostgreSQL does not order json, xml and point
        is_text = is_postgres and isinstance(column.type, types.JSON | types.NullType)
        order.append(sqlalchemy.cast(column, types.Text) if is_text else column)
    query = sqlalchemy.select(*selected).order_by(*order)
    dated = types.Date | types.DateTime
    days = [column.name for column in table.columns if isinstance(column.type, dated)]
    with engine.connect() as connection:
        if is_postgres:
            connection.exec_driver_sql("SET datestyle = ISO")
        rows = connection.execution_options(yield_per=BATCH).execute(query)
        for number, row in enumerate(map(dict, rows.mappings()), start=1):
            for name in days:
                if isinstance(row[name], str):
                    with suppress(ValueError):  # else as it is stored
                        row[name] = datetime.fromisoformat(row[name])
            yield Record(number, row)


def _as_stored(column: sqlalchemy.Column[Any], is_file: bool) -> ColumnElement[Any]:
    declared = column.type
    if is_file:  # SQLite stores any value in any column
        return sqlalchemy.type_coerce(column, types.NullType())
    is_code = getattr(declared, "zerofill", False) and not column.primary_key
    # Python has no date `infinity`, and no time `30:00:00`
    if is_code or isinstance(declared, types.Date | types.DateTime | types.Time):
        return sqlalchemy.cast(column, types.Text).label(column.name)
    if isinstance(declared, types.Float):
        declared.asdecimal = False  # MySQL's DOUBLE would be rounded to ten digits
    return column
