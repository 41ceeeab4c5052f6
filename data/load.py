"""Read a question file into one form, and check that form before anything expensive starts.

    from data.load import load_rows
    rows = load_rows("data/train.parquet")

Files are Parquet, JSONL or a JSON list. A row needs `id` and `question`. A row whose `answer` is missing, null or blank
is kept with the answer "" (`data/questions/draft.py` can write one). Accepted besides: `qid` for `id`, `ground_truth`
for `answer`, `source_table` for `table` in evidence, `sql` as one text or a list, nested values instead of JSON text,
and the names in `meta.entity` where `entities` is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from reprlib import Repr
from typing import Any

from data.rows import DataError, Record, read_records

__all__ = ["COLUMNS", "DataError", "checked_rows", "count_without_reference", "iterate_rows", "load_rows"]

REQUIRED = ("id", "question")
TEXTS = ("id", "question", "answer", "task_type", "difficulty", "split")
JSON_TEXTS = ("structured_gt", "evidence", "entities")
COLUMNS = (
    "id", "question", "answer", "task_type", "difficulty", "sql", "structured_gt", "evidence", "entities", "split",
)  # fmt: skip
ALIASES = {"qid": "id", "ground_truth": "answer"}

_SHORT = Repr()  # of a wrong value in a message, however large or deep it is
_SHORT.maxstring = _SHORT.maxother = 60
_SHORT.maxlevel = 3

Row = dict[str, Any]


class _Wrong(ValueError):
    """A value is not what its column holds."""


def load_rows(path: str | PathLike[str]) -> list[Row]:
    """The rows of a file in file order, each with all of COLUMNS, and what else the file has.

    `sql` is a list of statements, [] without any; every other one of COLUMNS is text, "" where there is nothing;
    `structured_gt`, `evidence` and `entities` are JSON text. Rows are counted from 0 in messages.

    Raises:
        DataError: no such file, not readable, no rows, a required column missing, a value of the wrong type or shape,
            text that should be JSON and is not, a blank id or question, or an id used twice.
    """
    return list(checked_rows(Path(path)))


def checked_rows(path: Path) -> Iterator[Row]:
    """The rows of `load_rows` one after another; of earlier ones only the ids are kept.

    Raises:
        DataError: as `load_rows`, when the row concerned is reached.
    """
    first_seen: dict[str, int] = {}
    for number, row, problems in iterate_rows(path):
        if problems:
            column, reason = problems[0]
            raise DataError(f"{path}, row {number}, column {column}: {reason}" if column else reason)
        earlier = first_seen.setdefault(row["id"], number)
        if earlier != number:
            raise DataError(f"{path}, row {number}, column id: {row['id']!r} is already the id of row {earlier}")
        yield row


def iterate_rows(path: Path) -> Iterator[tuple[int, Row, list[tuple[str, str]]]]:
    """Number, row and problems (column, reason) of every row, wrong ones included; a row without problems is usable.

    A line that is no row at all is an empty dict with one problem, of no column ("").

    Raises:
        DataError: no such file, not readable, no rows, or a required column missing from the first row.
    """
    number = -1
    for number, record in read_records(path):
        if isinstance(record, DataError):
            yield number, {}, [("", str(record))]
            continue
        if number == 0:
            _require_columns(record, path)
        yield number, *normalise_record(record)
    if number < 0:
        raise DataError(f"{path} has no rows")


def _require_columns(record: Record, path: Path) -> None:
    names = [ALIASES.get(name, name) for name in record]
    missing = [column for column in REQUIRED if column not in names]
    if missing:
        raise DataError(f"{path} has no column {', '.join(missing)}; it has: {', '.join(record)}")


def count_without_reference(rows: list[Row]) -> int:
    """How many rows have no answer to compare with."""
    return sum(1 for row in rows if not row["answer"])


def normalise_record(record: Record) -> tuple[Row, list[tuple[str, str]]]:
    """The row in one form, and what is wrong with it as (column, reason); the form is whole only without problems."""
    row = {ALIASES.get(name, name): value for name, value in record.items() if name in ALIASES}
    row |= {name: value for name, value in record.items() if name not in ALIASES}
    if row.get("entities") is None:
        row["entities"] = _meta_names(row.get("meta"))
    problems = []
    for column in COLUMNS:
        try:
            row[column] = _READERS[column](row.get(column))
            if column in REQUIRED and not row[column]:
                raise _Wrong("empty, expected text")
        except _Wrong as error:
            problems.append((column, str(error)))
    return row, problems


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Wrong(f"{_shown(value)} is {type(value).__name__}, expected text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _Wrong("half a surrogate pair, not a character") from None
    return value if value.strip() else ""


def _statements(value: Any) -> list[str]:
    """One statement, a list of them, or such a list as JSON text; no SQL begins with a bracket."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _parse(value)
    if value is None or isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        raise _Wrong(f"{_shown(value)} is {type(value).__name__}, expected text or a list of texts")
    return [statement for statement in map(_text, value) if statement]


def _gold(value: Any) -> str:
    text, gold = _json(value)
    if gold is None:
        return ""
    columns = gold.get("columns") if isinstance(gold, dict) else None
    rows = gold.get("rows") if isinstance(gold, dict) else None
    if not isinstance(columns, list) or not _are(columns, str) or not isinstance(rows, list) or not _are(rows, list):
        raise _Wrong(f'{_shown(gold)}: expected {{"columns": [...], "rows": [[...]]}}')
    if any(len(line) != len(columns) for line in rows):
        raise _Wrong(f"a row has not {len(columns)} cells, one a column: {_shown(rows)}")
    if not all(cell is None or isinstance(cell, str | int | float) for line in rows for cell in line):
        raise _Wrong(f"a cell is neither text nor a number nor null: {_shown(rows)}")
    return text


def _evidence(value: Any) -> str:
    text, items = _json(value)
    if items is None:
        return ""
    if not _are(items, dict) or not all(isinstance(item.get("quote"), str) for item in items):
        raise _Wrong(f"{_shown(items)}: expected a list of {{table, row_id, field, quote}}")
    for item in items:
        table = item.get("table", item.get("source_table"))
        if not isinstance(table, str | None) or not isinstance(item.get("field"), str | None):
            raise _Wrong(f"{_shown(item)}: expected table and field as text")
    if any("source_table" in item for item in items):
        text = _compact([_with_table(item) for item in items])
    return text


def _with_table(item: Record) -> Record:
    rest = {name: value for name, value in item.items() if name not in ("table", "source_table")}
    return {"table": item.get("table", item.get("source_table")), **rest}


def _entities(value: Any) -> str:
    text, names = _json(value)
    if names is None:
        return ""
    if not _are(names, str):
        raise _Wrong(f"{_shown(names)}: expected a list of names")
    return text


def _meta_names(meta: Any) -> list[str] | None:
    """The names in {"entity": {"drug_name": ...}}, the form other generators write."""
    entity = meta.get("entity") if isinstance(meta, dict) else None
    if not isinstance(entity, dict):
        return None
    return [value for key, value in entity.items() if "name" in key and isinstance(value, str) and value]


def _json(value: Any) -> tuple[str, Any]:
    """JSON text, and what it says; text stays as it is, a nested value is written out."""
    if isinstance(value, str):
        return (_text(value), _parse(value)) if value.strip() else ("", None)
    if not isinstance(value, dict | list | None):
        raise _Wrong(f"{_shown(value)} is {type(value).__name__}, expected text or nested values")
    try:
        return _text(_compact(value)), value
    except (TypeError, ValueError, RecursionError) as error:
        raise _Wrong(f"cannot be written as JSON: {error}") from None


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _Wrong(f"not JSON ({error}): {_shown(text)}") from None


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _shown(value: Any) -> str:
    return _SHORT.repr(value)


_READERS = dict.fromkeys(TEXTS, _text) | {
    "sql": _statements,
    "structured_gt": _gold,
    "evidence": _evidence,
    "entities": _entities,
}
