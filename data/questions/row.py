"""One row of a question file: its columns, and how whatever a file has becomes the text of each.

    row, problems = normalise({"qid": "7", "question": "...", "sql": ["SELECT 1"]})
    statements(row), nested(row, "evidence")

`data/load.py` says what a row is and reads files of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from reprlib import Repr
from typing import Any

REQUIRED = ("id", "question")
TEXTS = ("id", "question", "answer", "task_type", "difficulty", "split")
COLUMNS = (
    "id", "question", "answer", "task_type", "difficulty", "sql", "structured_gt", "evidence", "entities", "split",
)  # fmt: skip
ALIASES = {"qid": "id", "ground_truth": "answer"}
SHOWN = 60  # characters of a wrong value in a message

_SHORT = Repr()  # of a wrong value in a message, however large or deep it is
_SHORT.maxstring = _SHORT.maxother = SHOWN
_SHORT.maxlevel = 3

Record = dict[str, Any]  # a row as its file has it
Row = dict[str, Any]  # a row of the one form
Note = tuple[str, str]  # column, what is wrong


class _Wrong(ValueError):
    """A value is not what its column holds."""


def normalise(record: Record) -> tuple[Row, list[Note]]:
    """The record as a row, and what is wrong with it; the row is whole only without problems."""
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


def missing_columns(record: Record) -> list[str]:
    """The REQUIRED columns that the record has under no name."""
    return [column for column in REQUIRED if column not in {ALIASES.get(name, name) for name in record}]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Wrong(f"{_SHORT.repr(value)} is {type(value).__name__}, expected text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _Wrong("half a surrogate pair, not a character") from None
    return value if value.strip() else ""


def _sql(value: Any) -> str:
    """One statement, or a list of them; no SQL begins with a bracket."""
    if isinstance(value, str | None) and not (value or "").lstrip().startswith("["):
        return _text(value)
    _, found = _json(value)
    if not isinstance(found, list):
        raise _Wrong(f"{_SHORT.repr(value)} is {type(value).__name__}, expected text or a list of texts")
    several = [statement for statement in map(_text, found) if statement]
    one = len(several) == 1 and not several[0].lstrip().startswith("[")
    return several[0] if one else compact(several) if several else ""


def _gold(value: Any) -> str:
    text, gold = _json(value)
    if gold is None:
        return ""
    columns: Any = gold.get("columns") if isinstance(gold, dict) else None
    rows: Any = gold.get("rows") if isinstance(gold, dict) else None
    if not _are(columns, str) or not _are(rows, list):
        raise _Wrong(f'{_SHORT.repr(gold)}: expected {{"columns": [...], "rows": [[...]]}}')
    if any(len(line) != len(columns) for line in rows):
        raise _Wrong(f"a row has not {len(columns)} cells, one a column: {_SHORT.repr(rows)}")
    if not all(isinstance(cell, str | int | float | None) for line in rows for cell in line):
        raise _Wrong(f"a cell is neither text nor a number nor null: {_SHORT.repr(rows)}")
    return text


def _evidence(value: Any) -> str:
    text, items = _json(value)
    if items is None:
        return ""
    if not _are(items, dict) or not all(isinstance(item.get("quote"), str) for item in items):
        raise _Wrong(f"{_SHORT.repr(items)}: expected a list of {{table, row_id, field, quote}}")
    if any("source_table" in item for item in items):
        items = [{"table": item.get("source_table"), **item} for item in items]
        text = compact([{name: part for name, part in item.items() if name != "source_table"} for item in items])
    strange = [item for item in items if not _are([item.get("table"), item.get("field")], str | None)]
    if strange:
        raise _Wrong(f"{_SHORT.repr(strange[0])}: expected table and field as text")
    return text


def _entities(value: Any) -> str:
    text, names = _json(value)
    if names is not None and not _are(names, str):
        raise _Wrong(f"{_SHORT.repr(names)}: expected a list of names")
    return text if names is not None else ""


def _meta_names(meta: Any) -> list[str] | None:
    """The names in {"entity": {"drug_name": ...}}, the form other generators write."""
    entity = meta.get("entity") if isinstance(meta, dict) else None
    if not isinstance(entity, dict):
        return None
    return [value for key, value in entity.items() if "name" in key and isinstance(value, str) and value]


def _json(value: Any) -> tuple[str, Any]:
    """JSON text, and what it says; text stays as it is, a nested value is written out."""
    if not isinstance(value, str | dict | list | None):
        raise _Wrong(f"{_SHORT.repr(value)} is {type(value).__name__}, expected text or nested values")
    try:
        said = json.loads(value.strip() or "null") if isinstance(value, str) else value
        written = compact(said)
    except (TypeError, ValueError, RecursionError) as error:
        raise _Wrong(f"not JSON ({error}): {_SHORT.repr(value)}") from None
    _text(written)  # an escape may stand for half a surrogate pair
    return value if isinstance(value, str) else written, said


def _are(values: Any, kind: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


_READERS: dict[str, Callable[[Any], str]] = dict.fromkeys(TEXTS, _text) | {
    "sql": _sql, "structured_gt": _gold, "evidence": _evidence, "entities": _entities,
}  # fmt: skip


def statements(row: Row) -> list[str]:
    """The gold statements of a row; [] without any."""
    sql = row.get("sql") or ""
    return json.loads(sql) if sql.lstrip().startswith("[") else [sql] if sql else []


def nested(row: Row, column: str) -> Any:
    """What a column of JSON text says: a list for `evidence` and `entities`, a dict or None for `structured_gt`."""
    return json.loads(row[column] or ("null" if column == "structured_gt" else "[]"))


def compact(value: Any) -> str:
    """JSON text without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
