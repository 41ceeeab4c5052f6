"""Read what questions can be asked about: the entities of both tables, and the texts that questions search.

Any database with the two tables will do. Names and searched columns are kept of every row; other texts only of the
entities that are asked about (at most `limit` a table, drawn with the seed).

    catalogue = read_catalogue("sqlite:///data/medical.db", limit=5000, rng=random.Random(1))
    catalogue.entities[0].fields["indication"]
    catalogue.find("drugs_info", "indication", "头痛", 4)
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from data.database.schema import ASKABLE, FICTIONAL, NAME_COLUMN
from data.intake.sources import Part, database_parts, refusing
from data.load import DataError

# Columns that are searched by a part of their text or by a whole value.
SEARCHED = {
    "drugs_info": ("med_name", "indication", "component", "company_name"),
    "disease": ("disease_name", "complication", "overview"),
}
LONGEST_NAME = 40
SHORTEST_KEYWORD = 3  # characters
# A name with one of these can be written neither into a LIKE pattern nor, in MySQL, into a quoted text as it is.
AWKWARD = frozenset("\\%_'\"\n\r\t")


@dataclass(frozen=True)
class Entity:
    """One row of the database: its table, key, name and the texts of the columns that may be asked for.

    A field is "" where the cell is NULL, which `cells` tells.
    """

    table: str
    row_id: int
    name: str
    fields: Mapping[str, str]
    cells: Mapping[str, str | None]


@dataclass
class Catalogue:
    """What is in the database, by table.

    columns: all it has. titles: the name of every row, by key. names: how many rows bear each name. askable: keys of
    all rows that may be asked about. texts: by table and column, the filled cells of SEARCHED columns, by key.
    entities: those asked about.
    """

    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    titles: dict[str, dict[int, str]] = field(default_factory=dict)
    names: dict[str, Counter[str]] = field(default_factory=dict)
    askable: dict[str, set[int]] = field(default_factory=dict)
    texts: dict[tuple[str, str], dict[int, str]] = field(default_factory=dict)
    entities: list[Entity] = field(default_factory=list)

    def find(self, table: str, column: str, keyword: str, limit: int) -> list[int]:
        """Keys of up to `limit` + 1 rows whose cell holds the keyword, as LIKE finds it.

        [] for a column that is not there, and for a keyword too short to tell one row from others.
        """
        if len(keyword) < SHORTEST_KEYWORD:
            return []
        found = re.compile(re.escape(keyword), re.IGNORECASE | re.ASCII).search
        cells = self.texts.get((table, column), {})
        return list(islice((key for key, text in cells.items() if found(text)), limit + 1))

    def is_unknown(self, name: str) -> bool:
        """Whether no row of either table seems to be called by the name or by one that holds it."""
        return is_plain(name) and not any(self.find(*place, name, 0) for place in NAME_COLUMN.items())


def is_plain(name: str) -> bool:
    """Whether a name or value can stand in a question, a quoted text and a LIKE pattern alike."""
    return bool(name.strip()) and name == name.strip() and len(name) <= LONGEST_NAME and not AWKWARD & set(name)


def read_catalogue(url: str, limit: int, rng: random.Random) -> Catalogue:
    """Read the database; `limit` is the most entities of a table that are asked about.

    In a database with invented entities (column `source`) only these are; in any other, all. Names borne by several
    rows are left out, for a question about one would have several answers.

    Raises:
        DataError: the database cannot be read, or lacks a table, the key `id` or a name column.
    """
    catalogue = Catalogue()
    with refusing("cannot read the database", DataError):
        parts = {part.name: part for part in database_parts(url, views=True)}
        for table in NAME_COLUMN:
            if table not in parts:
                raise DataError(f"the database has no table {table}; its tables: {', '.join(parts)}")
            _read_table(parts[table], catalogue, limit, rng)
    return catalogue


def _read_table(part: Part, catalogue: Catalogue, limit: int, rng: random.Random) -> None:
    """Read a table twice: what is kept of all rows, then the texts of those that are asked about."""
    table, name_column = part.name, NAME_COLUMN[part.name]
    missing = {"id", name_column} - set(part.columns)
    if missing:
        raise DataError(f"table {table} has no column {', '.join(sorted(missing))}; see docs/data.md")
    searched = [column for column in SEARCHED[table] if column in part.columns]
    rows = {}
    for _, row, _ in part.records():
        if not isinstance(row["id"], int):
            kind = type(row["id"]).__name__
            raise DataError(f"table {table}, column id: {row['id']!r} is {kind}, expected whole numbers")
        rows[row["id"]] = {column: row.get(column) for column in (*searched, "source")}
    titles = catalogue.titles[table] = {key: str(rows[key][name_column] or "") for key in sorted(rows)}
    names = catalogue.names[table] = Counter(titles.values())
    catalogue.columns[table] = tuple(part.columns)
    for column in searched:
        catalogue.texts[table, column] = {key: str(rows[key][column]) for key in titles if rows[key][column]}
    askable = catalogue.askable[table] = {key for key in titles if rows[key]["source"] == FICTIONAL} or set(titles)
    single = [key for key, title in titles.items() if key in askable and names[title] == 1 and is_plain(title)]
    drawn = set(rng.sample(single, limit) if len(single) > limit else single)
    entities = [_entity(part, row, titles) for _, row, _ in part.records() if row["id"] in drawn]
    catalogue.entities += sorted(entities, key=lambda entity: entity.row_id)


def _entity(part: Part, row: Mapping[str, Any], titles: Mapping[int, str]) -> Entity:
    cells = {column: row[column] for column in ASKABLE[part.name] if column in part.columns}
    texts = {column: None if cell is None else str(cell) for column, cell in cells.items()}
    filled = {column: text or "" for column, text in texts.items()}
    return Entity(part.name, row["id"], titles[row["id"]], filled, texts)
