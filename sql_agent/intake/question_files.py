"""Question files: reads any accepted form into one kind of row, and writes it.

Files are Parquet, JSONL or a JSON list. A row is a dict of text with all of COLUMNS, "" for an
empty one. `sql` is a statement or a JSON list (see `statements`). `structured_gt`, `evidence` and
`entities` are JSON text (see `nested`). Rows need `id` (or `qid`) and `question`. Also accepted:
`ground_truth` for `answer`, `source_table` for `table`, nested values, names in `meta.entity`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from os import PathLike
from pathlib import Path
from reprlib import repr as shortly
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from common.files import replacing
from data.json_rows import Object, line_records
from data.parquet import parquet_records
from data.records import Record, SourceError, as_record, compact, detect_encoding, refusing
from sql_agent.intake.columns import listed
from sql_agent.intake.kinds import OF_KIND, binary_kind

REQUIRED = ("id", "question")
COLUMNS = (
    *("id", "question", "answer", "task_type", "difficulty", "sql"),
    *("structured_gt", "evidence", "entities", "split", "wording"),
)
ALIASES = {"qid": "id", "ground_truth": "answer"}
KINDS = "Parquet, lines of JSON or a JSON list"


class Gold(BaseModel):
    columns: list[str]
    rows: list[list[str | int | float | None]]


class Quote(BaseModel):
    table: str | None = None
    source_table: str | None = None
    field: str | None = None
    quote: str


# The columns of JSON text: their form, and how a message says it
NESTED: dict[str, tuple[TypeAdapter[Any], str]] = {
    "sql": (TypeAdapter(list[str | None]), "text or a list of texts"),
    "structured_gt": (
        TypeAdapter(Gold),
        '{"columns": [...], "rows": [[...]]}, whose cells are text, numbers or null',
    ),
    "evidence": (
        TypeAdapter(list[Quote]),
        "a list of {table, row_id, field, quote}, the first and last two as text",
    ),
    "entities": (TypeAdapter(list[str]), "a list of names"),
}

Row = dict[str, Any]
Note = tuple[str, str]  # the column, and its problem
DataError = SourceError  # a question file is unusable: its message names the column and the row


def load_rows(path: str | PathLike[str]) -> list[Row]:
    """Return the rows of a file in order. Raises DataError: a row, from 0, is not usable."""
    path = Path(path)
    rows: list[Row] = []
    first_seen: dict[str, int] = {}
    for number, record in read_records(path):
        if isinstance(record, DataError):
            raise record
        names = {ALIASES.get(name, name) for name in record}
        if number == 0 and (missing := [column for column in REQUIRED if column not in names]):
            raise DataError(
                f"{path} has no column {', '.join(missing)}; it has: {listed(list(record))}; add or "
                "rename it (docs/your-data.md#questions)"
            )
        row, problems = normalise(record)
        if problems:
            column, reason = problems[0]
            raise DataError(f"{path}, row {number}, column {column}: {reason}")
        earlier = first_seen.setdefault(row["id"], number)
        if earlier != number:
            raise DataError(
                f"{path}, row {number}, column id: {row['id']!r} is already the id of row {earlier}"
            )
        rows.append(row)
    if not rows:
        raise DataError(f"{path} has no rows")
    return rows


def write_rows(rows: Iterable[Row], path: Path, made_from: str = "") -> None:
    """Write the COLUMNS of the rows as JSONL or Parquet, completely or not at all.

    made_from: the URL of their database, without a password, which Parquet keeps.
    """
    known = [{column: row[column] for column in COLUMNS} for row in rows]
    with replacing(path) as draft:
        if path.suffix == ".jsonl":
            draft.write_text("".join(compact(row) + "\n" for row in known), encoding="utf-8")
        else:
            import pyarrow as arrow
            import pyarrow.parquet as parquet

            kept = {"database": made_from} if made_from else None
            schema = arrow.schema([(column, arrow.string()) for column in COLUMNS], kept)
            parquet.write_table(arrow.Table.from_pylist(known, schema=schema), draft)


def made_from(path: Path | str) -> str:
    """Return the URL of the database that a file's rows were made from, or ""."""
    if not _is_parquet(Path(path)):
        return ""
    from pyarrow.parquet import read_schema

    return dict(read_schema(path).metadata or {}).get(b"database", b"").decode()


def count_without_reference(rows: Iterable[Row]) -> int:
    """Return how many rows have no answer to compare with."""
    return sum(1 for row in rows if not row["answer"])


def read_records(path: Path) -> Iterator[tuple[int, Row | DataError]]:
    """Yield each row's number from 0, and the row, or the error of a line that is not an object.

    Blank lines of JSONL are skipped. Raises DataError: no such file, or it cannot be read further.
    """
    with refusing(f"{path} cannot be read"):
        if not path.is_file():
            seen = "is a folder" if path.is_dir() else "does not exist or is no file"
            raise DataError(f"{path} {seen}; expected {KINDS} with the columns id and question")
        for number, record in enumerate(_records(path)):
            wrong = f"{path}, row {number}: {record.problem}"
            yield number, DataError(wrong) if record.problem else record.values


def _records(path: Path) -> Iterator[Record]:
    if _is_parquet(path):
        yield from parquet_records(path)
        return
    with path.open("rb") as file:
        other = binary_kind(file.read(64))
    if other and path.suffix.lower() in OF_KIND:
        raise DataError(
            f"{path} is a table and has no questions; read it with data.import_database, make "
            "questions of it with data.build_dataset and give those"
        )
    if other:
        raise DataError(f"{path} is {other}; expected {KINDS}")
    with path.open(encoding=detect_encoding(path)) as file:
        filled = filter(str.strip, file)
        first = next(filled, "").lstrip()
        if first.startswith("{"):
            yield from line_records(chain([first], filled))
        elif first.startswith("["):
            found = json.loads(first + file.read(), object_pairs_hook=Object)
            yield from map(as_record, count(1), found)
        else:
            seen = f"begins with {first[0]!r}" if first else "is empty"
            raise DataError(f"{path} {seen}; expected {KINDS}")


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def normalise(record: Row) -> tuple[Row, list[Note]]:
    """Return the record as a row, and its problems. Only without problems is the row complete."""
    row = _renamed(record, ALIASES)
    entity = row["meta"].get("entity") if isinstance(row.get("meta"), dict) else None
    if row.get("entities") is None and isinstance(entity, dict):  # as other generators write it
        named = [value for key, value in entity.items() if "name" in key]
        row["entities"] = [text for text in named if isinstance(text, str) and text]
    problems = []
    for column in COLUMNS:
        try:
            row[column] = _read(column, row.get(column))
            if column in REQUIRED and not row[column]:
                raise ValueError("empty, expected text")
        except ValueError as error:
            problems.append((column, str(error)))
    return row, problems


def _renamed(values: Row, aliases: Mapping[str, str]) -> Row:
    named = dict(values)
    for other, own in aliases.items():
        if other in named:
            value = named.pop(other)
            named[own] = named.get(own) or value
    return named


def _read(column: str, value: Any) -> str:
    if column == "id" and type(value) is int:  # as public question files write it too
        return str(value)
    is_statement = isinstance(value, str) and not value.lstrip().startswith("[")
    if column not in NESTED or (column == "sql" and is_statement):
        return _text(value)
    try:
        found = json.loads(value.strip() or "null") if isinstance(value, str) else value
        compact(found).encode()  # an escape may stand for half a surrogate pair
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error}): {shortly(value)}") from None
    if found is None:
        return ""
    kind, expected = NESTED[column]
    try:
        kind.validate_python(found)
    except ValidationError:
        raise ValueError(f"{shortly(found)}: expected {expected}") from None
    if column == "sql":
        found = [statement for statement in found if statement and statement.strip()]
        if len(found) < 2 and not "".join(found).lstrip().startswith("["):
            return "".join(found)
    if column == "structured_gt":
        width = len(found["columns"])
        if any(len(line) != width for line in found["rows"]):
            raise ValueError(f"a row has not {width} cells, one a column: {shortly(found['rows'])}")
    if column == "evidence":
        found = [_renamed(quote, {"source_table": "table"}) for quote in found]
    return compact(found)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{shortly(value)} is {type(value).__name__}, expected text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair, not a character") from None
    return value if value.strip() else ""


def statements(row: Row) -> list[str]:
    """Return the gold statements of a row, or []."""
    sql = row.get("sql") or ""
    if sql.lstrip().startswith("["):
        return list(json.loads(sql))
    return [sql] if sql else []


def nested(row: Row, column: str) -> Any:
    """Return the value of a column of JSON text: a list, or for `structured_gt` a dict or None."""
    return json.loads(row[column] or ("null" if column == "structured_gt" else "[]"))
