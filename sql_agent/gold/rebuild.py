"""Builds a small database from quotes of evidence, if a question file's own is missing.

    print(rebuild([Path("questions.jsonl")], Path("evidence.db")))    # rebuilt 61 rows with 96 fields

Each quote fills its field in the row of its key, below earlier ones. The entity listed in its place
names the row. All else is empty, so searches find only quotes.
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
Place = tuple[str, int | None]  # table and key
Tables = dict[str, dict[int, Cells]]  # by table and key


def rebuild(files: list[Path], target: Path, force: bool = False) -> str:
    """Write the SQLite file `target`, completely or not at all, and return what it holds.

    Raises DataError: a question file cannot be read. Raises FileError: `target` exists (without
    `force`), or its folder does not.
    """
    refuse_existing(target, force)
    tables: Tables = {table: {} for table in NAME_COLUMN}
    unused = 0
    for file in files:
        for _, row, problems in iterate_rows(file):
            if not {"", "evidence", "entities"} & {column for column, _ in problems}:
                unused += _add(tables, row)
    write_database(target, {table: rows.values() for table, rows in tables.items()})
    fields = 0
    nameless = 0
    for table, rows in tables.items():
        for cells in rows.values():
            named = str(cells[NAME_COLUMN[table]])
            nameless += named.startswith(STAND_IN)
            filled = sum(cell is not None for cell in cells.values())
            fields += filled - len(("id", "source", "name"))
    count = sum(map(len, tables.values()))
    notes = [f"rebuilt {count} rows with {fields} fields from the evidence"]
    notes += [f"{nameless} rows of unknown name"] if nameless else []
    notes += [f"{unused} quotes without a known table, key or field left out"] if unused else []
    return ", ".join(notes)


def _add(tables: Tables, row: Row) -> int:
    items = nested(row, "evidence")
    places = [_place(item) for item in items]
    listed = nested(row, "entities")
    cited = list(dict.fromkeys(places))
    names = dict(zip(cited, listed, strict=True)) if len(cited) == len(listed) else {}
    unused = 0
    for place, item in zip(places, items, strict=True):
        table, key = place
        field = str(item.get("field")).lower()
        quote = storable(item["quote"])
        known = field in TABLES.get(table, {}) and field not in ("id", "source")
        if key is None or quote is None or not known:
            unused += 1
            continue
        name = NAME_COLUMN[table]
        unknown = {"id": key, name: f"{STAND_IN} {key}）", "source": SOURCE}
        cells = tables[table].setdefault(key, dict.fromkeys(TABLES[table]) | unknown)
        named = storable(names.get(place, ""))
        if named:
            cells[name] = named[:NAME_LENGTH]
        old = cells[field]
        if field == name:
            cells[name] = quote[:NAME_LENGTH]
        elif old is None or str(old) in quote:
            cells[field] = quote
        elif quote not in str(old):
            cells[field] = f"{old}\n{quote}"
    return unused


def _place(item: dict[str, Any]) -> Place:
    return str(item.get("table")).lower(), row_key(item.get("row_id"))
