"""A small database made of what evidence quotes, for question files whose own database is missing.

    print(rebuild([Path("questions.jsonl")], Path("evidence.db")))    # rebuilt 61 rows with 96 fields from ...

Every quote fills the field it names, in a row of its own key; several quotes of one field stand
below each other. The row's name is the entity that belongs to its key. Everything else is empty, so
searches find only what was quoted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common.files import refuse_existing
from sql_agent.gold.checker import STAND_IN
from sql_agent.gold.cited import row_key
from sql_agent.gold.markup import storable
from sql_agent.intake.question_files import Row, iterate_rows, nested
from sql_agent.tables import NAME_COLUMN, NAME_LENGTH, TABLES, Cells, write_database

SOURCE = "evidence"
NAMELESS = STAND_IN + " {key}）"

Tables = dict[str, dict[int, Cells]]  # by table and key


def rebuild(files: list[Path], target: Path, force: bool = False) -> str:
    """Write the SQLite file `target`, completely or not at all, and return what it holds and what
    could not be used.

    Raises:
        DataError: a question file cannot be read.
        FileError: `target` is there already (without `force`), or its folder is not.
    """
    refuse_existing(target, force)
    tables: Tables = {table: {} for table in NAME_COLUMN}
    unused = 0
    for file in files:
        for _, row, problems in iterate_rows(file):
            if not {"", "evidence", "entities"} & {column for column, _ in problems}:
                unused += _add(tables, row)
    write_database(target, {table: rows.values() for table, rows in tables.items()})
    return _described(tables, unused)


def _described(tables: Tables, unused: int) -> str:
    named = [
        (cells, NAME_COLUMN[table]) for table, rows in tables.items() for cells in rows.values()
    ]
    fields = sum(
        cells[column] is not None
        for cells, name in named
        for column in cells.keys() - {"id", "source", name}
    )
    nameless = sum(cells[name] == NAMELESS.format(key=cells["id"]) for cells, name in named)
    notes = [f"rebuilt {len(named)} rows with {fields} fields from the evidence"]
    notes += [f"{nameless} rows of unknown name"] if nameless else []
    notes += [f"{unused} quotes without a known table, key or field left out"] if unused else []
    return ", ".join(notes)


def _add(tables: Tables, row: Row) -> int:
    """Put what the row quotes into the tables, and return how many quotes fit nowhere."""
    items = nested(row, "evidence")
    names = _names(row, items)
    unused = 0
    for item in items:
        table = str(item.get("table")).lower()
        field = str(item.get("field")).lower()
        key = row_key(item.get("row_id"))
        quote = storable(item["quote"])
        if (
            field not in TABLES.get(table, {})
            or field in ("id", "source")
            or key is None
            or quote is None
        ):
            unused += 1
            continue
        name = NAME_COLUMN[table]
        unknown = {"id": key, name: NAMELESS.format(key=key), "source": SOURCE}
        cells = tables[table].setdefault(key, dict.fromkeys(TABLES[table]) | unknown)
        if (table, key) in names:
            cells[name] = names[table, key][:NAME_LENGTH]
        cells[field] = quote[:NAME_LENGTH] if field == name else _joined(cells[field], quote)
    return unused


def _joined(old: Any, quote: str) -> str:
    """Return the old text with the quote added, unless the text contains it."""
    if old is None or old in quote:
        return quote
    return old if quote in old else f"{old}\n{quote}"


def _names(row: Row, items: list[dict[str, Any]]) -> dict[tuple[str, int], str]:
    """Return names by table and key: from `meta.entity`, where a name and a key stand side by side,
    else from `entities`, when there are as many as rows cited, in the same order.
    """
    cited = list(
        dict.fromkeys(
            (str(item.get("table")).lower(), row_key(item.get("row_id"))) for item in items
        )
    )
    by_key = _side_by_side(row.get("meta"))
    names = nested(row, "entities")
    found = {place: by_key[place[1]] for place in cited if place[1] in by_key}
    if not found and len(names) == len(cited):
        found = dict(zip(cited, names, strict=True))
    storables = {place: storable(name) for place, name in found.items()}
    return {
        (table, key): name for (table, key), name in storables.items() if key is not None and name
    }


def _side_by_side(meta: Any) -> dict[int | None, str]:
    """Return names by key: `drug_id_a` belongs to `drug_name_a`."""
    entity = meta.get("entity") if isinstance(meta, dict) else None
    fields = entity if isinstance(entity, dict) else {}
    names = {
        field: name for field, name in fields.items() if "name" in field and isinstance(name, str)
    }
    return {
        row_key(fields.get("id".join(field.rsplit("name", 1)))): name
        for field, name in names.items()
    }
