"""Builds a small database from quotes of evidence, if a question file's own is missing.

    print(rebuild([Path("questions.jsonl")], Path("evidence.db")))    # rebuilt 61 rows with 96 fields

Each quote fills its field in the row of its key, below earlier ones. The entity listed in its place
names the row. All else is empty, so searches find only quotes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine

from common.files import refuse_existing, replacing
from sql_agent.gold.checker import STAND_IN, row_key
from sql_agent.intake.cells import CellError, to_text
from sql_agent.intake.question_files import iterate_rows, nested
from sql_agent.tables import NAME_COLUMN, NAME_LENGTH, TABLES, Cells, insert_rows, metadata

Place = tuple[str, int | None]  # table and key


def rebuild(files: list[Path], target: Path, force: bool = False) -> str:
    """Write the SQLite file `target`, completely or not at all, and return what it holds.

    Raises DataError: a question file cannot be read. Raises FileError: `target` exists (without
    `force`), or its folder does not.
    """
    refuse_existing(target, force)
    rows: dict[Place, Cells] = {}
    unused = 0
    for file in files:
        for _, row, problems in iterate_rows(file):
            if {"", "evidence", "entities"} & {column for column, _ in problems}:
                continue
            items = nested(row, "evidence")
            listed = nested(row, "entities")
            cited = list(dict.fromkeys(map(_place, items)))
            names = dict(zip(cited, listed, strict=True)) if len(cited) == len(listed) else {}
            for item in items:
                unused += not _fill(rows, item, names.get(_place(item), ""))
    schema = metadata()
    with replacing(target) as draft:
        engine = create_engine(f"sqlite:///{draft}")
        schema.create_all(engine)
        with engine.begin() as connection:
            for name in schema.tables:
                own = [cells for (table, _), cells in rows.items() if table == name]
                insert_rows(connection, schema.tables[name], own)
        engine.dispose()
    fields = 0
    nameless = 0
    for (table, _), cells in rows.items():
        nameless += str(cells[NAME_COLUMN[table]]).startswith(STAND_IN)
        filled = sum(cell is not None for cell in cells.values())
        fields += filled - len(("id", "source", "name"))
    notes = [f"rebuilt {len(rows)} rows with {fields} fields from the evidence"]
    notes += [f"{nameless} rows of unknown name"] if nameless else []
    notes += [f"{unused} quotes without a known table, key or field left out"] if unused else []
    return ", ".join(notes)


def _place(item: Mapping[str, Any]) -> Place:
    return str(item.get("table")).lower(), row_key(item.get("row_id"))


def _fill(rows: dict[Place, Cells], item: Mapping[str, Any], entity: str) -> bool:
    """Put a quote into its cell. Return whether it has a known place."""
    place = _place(item)
    table, key = place
    field = str(item.get("field")).lower()
    quote = _storable(item["quote"])
    if key is None or quote is None or field not in TABLES.get(table, {}):
        return False
    if field in ("id", "source"):
        return False
    name = NAME_COLUMN[table]
    unknown = {"id": key, name: f"{STAND_IN} {key}）", "source": "evidence"}
    cells = rows.setdefault(place, dict.fromkeys(TABLES[table]) | unknown)
    named = _storable(entity)
    if named:
        cells[name] = named[:NAME_LENGTH]
    old = cells[field]
    if field == name:
        cells[name] = quote[:NAME_LENGTH]
    elif old is None or str(old) in quote:
        cells[field] = quote
    elif quote not in str(old):
        cells[field] = f"{old}\n{quote}"
    return True


def _storable(text: str) -> str | None:
    """Return the text as a table stores it, or None if it is empty or a database would refuse it."""
    try:
        return to_text(text)
    except CellError:
        return None
