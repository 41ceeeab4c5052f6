"""Which column of a foreign table becomes which column of ours: by name, by synonym, or by a mapping file.

The words are in `data/database/tables.toml`.

from data.intake.columns import plan_parts, read_mapping
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from data.database.schema import NAME_COLUMN, TABLE_WORDS, TABLES, WORDS
from data.intake.sources import Part, SourceError

Given = Mapping[str, str | None]  # a mapping file: source column, our column


class Planned(NamedTuple):
    """A part of the source, the table it goes to, and which of its columns fills which of the table's."""

    part: Part
    table: str
    mapping: dict[str, str]


def normalise(name: str) -> str:
    """A column name without what writers vary: width, case, spaces, underscores, brackets and punctuation."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", name).lower())


# By table: a word as `normalise` leaves it, and the column it stands for.
KNOWN = {
    table: {normalise(word): column for column, words in columns.items() for word in (column, *words)}
    for table, columns in WORDS.items()
}


def plan_parts(parts: list[Part], table: str | None, given: Given) -> tuple[list[Planned], list[str]]:
    """Which parts are imported where, and the names of those that are not.

    Raises:
        SourceError: a part's table can not be told, or its columns not mapped.
    """
    planned, skipped = [], []
    for part in parts:
        guessed = table if table and len(parts) == 1 else guess_table(part.columns, part.name)
        if guessed is None or table not in (None, guessed):
            skipped.append(part)
        else:
            planned.append(Planned(part, guessed, map_columns(part.columns, guessed, given)))
    if not planned:
        seen = "; ".join(f"{part.name}: {', '.join(part.columns)}" for part in skipped)
        raise SourceError(f"which table is it? give --table drugs_info or disease, and --part; columns: {seen}")
    return planned, [part.name for part in skipped]


def guess_table(columns: Iterable[str], name: str = "") -> str | None:
    """The table that foreign columns stand for, or, where they do not tell, the foreign table's own name; else None.

    Columns tell when one of them is the entity's name and they fit no other table as well.
    """
    words = {normalise(column) for column in columns}
    matches = {table: [known[word] for word in words & known.keys()] for table, known in KNOWN.items()}
    fits = {table: len(found) for table, found in matches.items() if NAME_COLUMN[table] in found}
    best = [table for table, count in fits.items() if count == max(fits.values())]
    if len(best) == 1:
        return best[0]
    return next((table for table in TABLES if normalise(name) in map(normalise, TABLE_WORDS[table])), None)


def map_columns(columns: list[str], table: str, given: Given) -> dict[str, str]:
    """The foreign columns that are used, each with the column of `table` it fills.

    `given` decides for the columns it names (None: leave out); the rest go by name and synonym.

    Raises:
        SourceError: `given` names a column that does not exist, two columns fill the same one, or none is the name.
    """
    for source, column in given.items():
        if source not in columns:
            raise SourceError(f"the mapping names the column {source!r}; the source has: {', '.join(columns)}")
        if column is not None and column not in TABLES[table]:
            raise SourceError(f"the mapping names {column!r}; {table} has: {', '.join(TABLES[table])}")
    filled: dict[str, str] = {}
    for source in columns:
        column = given[source] if source in given else KNOWN[table].get(normalise(source))
        if column in filled:
            raise SourceError(f"columns {filled[column]!r} and {source!r} both fill {column}; choose with --mapping")
        if column is not None:
            filled[column] = source
    name = NAME_COLUMN[table]
    if name not in filled:
        raise SourceError(f"no column for {name} of {table} among: {', '.join(columns)}; name it with --mapping")
    return {source: column for column, source in filled.items()}


def read_mapping(path: Path) -> dict[str, str | None]:
    """A JSON or YAML file of `source column: our column` (null: leave out).

    Raises:
        SourceError: no such file, neither JSON nor YAML, or not such a mapping.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = json.loads(text) if path.suffix.lower() == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise SourceError(f"cannot read the mapping {path}: {str(error).splitlines()[0]}") from None
    texts = isinstance(content, dict) and all(isinstance(text, str | None) for text in content.values())
    if not texts or not all(isinstance(column, str) for column in content):
        raise SourceError(f"{path}: expected lines of `source column: our column`, all text")
    return content
