"""Read a foreign table row by row: CSV, TSV, Excel, JSON, JSONL, Parquet or a table of another database.

Nothing larger than a batch is held (Excel: the workbook's list of texts as well). Rows are numbered as their readers
see them: in CSV, TSV and Excel the header is row 1, in JSONL a row is a line, elsewhere the first row is 1.

    from data.intake.sources import open_parts
    for part in open_parts("drugs.csv"):
        for record in part.records(): ...
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

from data.intake.source_tables import database_parts, excel_parts, parquet_parts
from data.intake.source_types import Part, Record, SourceError
from data.intake.source_types import header_row as header_row

MAX_CELL = 16 * 1024 * 1024
PIECE = 1024 * 1024
DELIMITERS = ",\t;|"
FORMATS = ".csv, .tsv, .txt, .xlsx, .xlsm, .json, .jsonl, .ndjson, .parquet, or a database URL"


def open_parts(source: str, encoding: str | None = None, part: str | None = None) -> list[Part]:
    """The tables of a source: one of a text or Parquet file, each sheet of a workbook, each table of a database.

    `encoding` overrides the detection (text files only); `part` keeps only the sheet or table of that name.

    Raises:
        SourceError: no such file, an unknown kind, unreadable content, or no part of that name.
    """
    if "://" in source:
        parts = database_parts(source)
    else:
        path = Path(source)
        if not path.is_file():
            raise SourceError(
                f"{path} {'is a folder' if path.is_dir() else 'does not exist'}; expected a file: {FORMATS}"
            )
        parts = _file_parts(path, encoding)
    if part is None:
        return parts
    chosen = [candidate for candidate in parts if candidate.name == part]
    if not chosen:
        raise SourceError(f"no part {part!r} in the source; it has: {', '.join(each.name for each in parts)}")
    return chosen


def _file_parts(path: Path, encoding: str | None) -> list[Part]:
    suffix = path.suffix.lower()
    if suffix in (".xlsx", ".xlsm"):
        return excel_parts(path)
    if suffix == ".parquet":
        return parquet_parts(path)
    readers: dict[str, Callable[[Path, str], Part]] = {
        ".csv": _csv_part, ".tsv": _csv_part, ".txt": _csv_part,
        ".json": _json_part, ".jsonl": _jsonl_part, ".ndjson": _jsonl_part,
    }  # fmt: skip
    if suffix not in readers:
        raise SourceError(f"{path}: unknown kind {suffix or '(no ending)'!r}; expected {FORMATS}")
    return [readers[suffix](path, encoding or detect_encoding(path))]


def detect_encoding(path: Path) -> str:
    """UTF-8 (with or without mark), UTF-16 with mark, or GB18030; the whole file is decoded to be sure.

    Raises:
        SourceError: none of them fits.
    """
    with path.open("rb") as file:
        start = file.read(4)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        candidates = ["utf-16"]
    elif start.startswith(b"\xef\xbb\xbf"):
        candidates = ["utf-8-sig"]
    else:
        candidates = ["utf-8", "gb18030"]
    problems = []
    for encoding in candidates:
        try:
            with path.open(encoding=encoding, newline="") as text:
                while text.read(PIECE):
                    pass
            return encoding
        except UnicodeError as error:
            problems.append(f"{encoding}: {error}")
    raise SourceError(f"{path} is text in none of the encodings tried ({'; '.join(problems)}); give --encoding")


@dataclass
class _OpenText:
    """A text file that knows how many of its bytes were read."""

    path: Path
    encoding: str

    def __post_init__(self) -> None:
        self.size = self.path.stat().st_size
        self.read = 0

    def lines(self) -> Iterator[str]:
        try:
            with self.path.open("rb") as raw, TextIOWrapper(raw, self.encoding, newline="") as file:
                for number, line in enumerate(file):
                    if number % 1000 == 0:
                        self.read = raw.tell()
                    yield line
        except (UnicodeError, LookupError, OSError) as error:
            raise SourceError(f"{self.path} cannot be read as {self.encoding}: {error}") from None


def _csv_part(path: Path, encoding: str) -> Part:
    text = _OpenText(path, encoding)
    csv.field_size_limit(MAX_CELL)
    first = next(text.lines(), "")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(DELIMITERS, key=first.count)

    def rows() -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(text.lines(), delimiter=delimiter, strict=True)
        try:
            yield from enumerate(reader, start=1)
        except csv.Error as error:
            raise SourceError(f"{path}, near line {reader.line_num}: {error}; is a quotation mark left open?") from None

    header = next((cells for _, cells in rows()), [])
    columns = header_row(header, str(path))

    def records() -> Iterator[Record]:
        for number, cells in rows():
            if number > 1:
                yield _record(number, columns, cells)

    return Part(path.stem, columns, records, lambda: (text.read, text.size))


def _record(number: int, columns: list[str], cells: list[str]) -> Record:
    if not any(cell.strip() for cell in cells):
        return Record(number, {})
    if len(cells) != len(columns):
        return Record(number, {}, f"{len(cells)} cells, the header has {len(columns)}")
    return Record(number, dict(zip(columns, cells, strict=True)))


def _jsonl_part(path: Path, encoding: str) -> Part:
    text = _OpenText(path, encoding)

    def records() -> Iterator[Record]:
        for number, line in enumerate(text.lines(), start=1):
            if not line.strip():
                yield Record(number, {})
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield Record(number, {}, f"not JSON ({error})")
                continue
            yield _object(number, value)

    return Part(path.stem, _keys(records(), path), records, lambda: (text.read, text.size))


def _json_part(path: Path, encoding: str) -> Part:
    size, read = path.stat().st_size, [0]

    def records() -> Iterator[Record]:
        import ijson

        try:
            with path.open("rb") as raw, TextIOWrapper(raw, encoding, newline="") as file:
                for number, value in enumerate(ijson.items(_Utf8(file), "item", use_float=True), start=1):
                    read[0] = raw.tell()
                    yield _object(number, value)
        except (ijson.JSONError, ValueError, RecursionError, OSError) as error:
            raise SourceError(f"{path} is not a list of JSON objects: {str(error).splitlines()[0]}") from None

    return Part(path.stem, _keys(records(), path), records, lambda: (read[0], size))


@dataclass
class _Utf8:
    """A text file read as UTF-8 bytes, which is what the JSON parser takes."""

    file: IO[str]

    def read(self, size: int = -1) -> bytes:
        return self.file.read(size).encode("utf-8")


def _object(number: int, value: Any) -> Record:
    if not isinstance(value, dict):
        return Record(number, {}, f"{type(value).__name__}, expected an object")
    return Record(number, value)


def _keys(records: Iterator[Record], path: Path) -> list[str]:
    """Every key of any object, in order of appearance: one extra pass, as objects may differ."""
    keys: dict[str, None] = {}
    for record in records:
        keys.update(dict.fromkeys(record.values))
    if not keys:
        raise SourceError(f"{path} has no JSON objects with keys; expected a list of objects (.jsonl: one a line)")
    return list(keys)
