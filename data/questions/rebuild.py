"""A small database made of what evidence quotes, for question files whose own database nobody has.

    print(rebuild([Path("questions.jsonl")], Path("evidence.db")))    # 61 rows with 96 fields from ...

Every quote fills the field it names, in a row of its own key; several quotes of one field stand below each other. The
row's name is the entity that belongs to its key. Everything else is empty, so searches find only what was quoted.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.database.schema import NAME_COLUMN, NAME_LENGTH, TABLES, metadata
from data.intake.cells import CellError, to_text
from data.load import Row, iterate_rows
from data.questions.cited import row_key

SOURCE = "evidence"
NAMELESS = "（名称未知 {key}）"
ENTITY_NAME = re.compile(r"^(.*)name(.*)$")


class RebuildError(ValueError):
    """The database cannot be made; the message says why and what to do."""


@dataclass
class Built:
    """What was built, and what of the evidence could not be used."""

    rows: int = 0
    fields: int = 0
    nameless: int = 0
    unused: int = 0

    def __str__(self) -> str:
        notes = [f"rebuilt {self.rows} rows with {self.fields} fields from the evidence"]
        if self.nameless:
            notes.append(f"{self.nameless} rows of unknown name")
        if self.unused:
            notes.append(f"{self.unused} quotes without a known table, key or field left out")
        return ", ".join(notes)


def rebuild(files: list[Path], target: Path, force: bool = False) -> Built:
    """Write the SQLite file `target`, complete or not at all.

    Raises:
        DataError: a question file cannot be read.
        RebuildError: `target` is there already (without `force`), or its folder is not.
    """
    if target.exists() and not force:
        raise RebuildError(f"{target} exists; give another path, or --force to replace it")
    if not target.parent.is_dir():
        raise RebuildError(f"the folder {target.parent} does not exist")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    try:
        built = _fill(Path(name), files)
        os.replace(name, target)
    finally:
        Path(name).unlink(missing_ok=True)
    return built


def _fill(path: Path, files: list[Path]) -> Built:
    from sqlalchemy import create_engine

    engine = create_engine(f"sqlite:///{path}")
    metadata().create_all(engine)
    engine.dispose()
    built = Built()
    with closing(sqlite3.connect(path)) as connection, connection:
        for file in files:
            for _, row, problems in iterate_rows(file):
                if not {"", "evidence", "entities"} & {column for column, _ in problems}:
                    _add(connection, row, built)
        for table, column in NAME_COLUMN.items():
            rows, nameless = connection.execute(
                f"SELECT count(*), count(*) FILTER (WHERE {column} LIKE ?) FROM {table}", [NAMELESS.format(key="%")]
            ).fetchone()
            filled = ", ".join(f"count({name})" for name in TABLES[table] if name not in ("id", column, "source"))
            built.fields += sum(connection.execute(f"SELECT {filled} FROM {table}").fetchone())
            built.rows, built.nameless = built.rows + rows, built.nameless + nameless
    return built


def _add(connection: sqlite3.Connection, row: Row, built: Built) -> None:
    items = json.loads(row["evidence"] or "[]")
    names = _names(row, items)
    for item in items:
        table, field = str(item.get("table")).lower(), str(item.get("field")).lower()
        key, quote = row_key(item.get("row_id")), _storable(item["quote"])
        if field not in TABLES.get(table, {}) or field in ("id", "source") or key is None or quote is None:
            built.unused += 1
            continue
        name = NAME_COLUMN[table]
        known = names.get((table, key))
        connection.execute(
            f"INSERT INTO {table} (id, {name}, source) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING",
            [key, NAMELESS.format(key=key), SOURCE],
        )
        if known:
            connection.execute(f"UPDATE {table} SET {name} = ? WHERE id = ?", [known[:NAME_LENGTH], key])
        _put(connection, table, key, field, quote)


def _put(connection: sqlite3.Connection, table: str, key: int, field: str, quote: str) -> None:
    """Fill the field; what is there already stays, and a quote that is part of it adds nothing."""
    if field == NAME_COLUMN[table]:
        connection.execute(f"UPDATE {table} SET {field} = ? WHERE id = ?", [quote[:NAME_LENGTH], key])
        return
    (old,) = connection.execute(f"SELECT {field} FROM {table} WHERE id = ?", [key]).fetchone()
    if old is None or old in quote:
        text = quote
    elif quote in old:
        text = old
    else:
        text = f"{old}\n{quote}"
    connection.execute(f"UPDATE {table} SET {field} = ? WHERE id = ?", [text, key])


def _storable(text: str) -> str | None:
    try:
        return to_text(text)
    except CellError:
        return None


def _names(row: Row, items: list[dict[str, Any]]) -> dict[tuple[str, int], str]:
    """Names by table and key: from `meta.entity`, where a name and a key stand side by side, else from `entities`, when
    there are as many as rows cited, in the same order."""
    cited = list(dict.fromkeys((str(item.get("table")).lower(), row_key(item.get("row_id"))) for item in items))
    by_key = dict(_paired(row.get("meta")))
    found = {place: by_key[place[1]] for place in cited if place[1] in by_key}
    names = json.loads(row["entities"] or "[]")
    if not found and len(names) == len(cited):
        found = dict(zip(cited, names, strict=True))
    return {(table, key): name for (table, key), name in found.items() if key is not None and name.strip()}


def _paired(meta: Any) -> Iterator[tuple[int, str]]:
    """Keys with names: `drug_id_a` belongs to `drug_name_a`."""
    entity = meta.get("entity") if isinstance(meta, dict) else None
    for field, name in (entity if isinstance(entity, dict) else {}).items():
        match = ENTITY_NAME.match(field)
        key = row_key(entity.get(f"{match[1]}id{match[2]}")) if match and isinstance(entity, dict) else None
        if key is not None and isinstance(name, str):
            yield key, name
