"""Read what questions can be asked about: the entities of both tables, and the texts that questions search.

Any database with the two tables will do. Names and searched columns are read of every row; other texts only of the
entities that are asked about (at most `limit` a table, drawn with the seed).

    catalogue = read_catalogue("sqlite:///data/medical.db", limit=5000, rng=random.Random(1))
    catalogue.entities[0].fields["indication"]
    catalogue.find("drugs_info", "indication", "头痛", 4)
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from data.database.schema import ASKABLE, FICTIONAL, NAME_COLUMN
from data.intake.sources import first_line
from data.load import DataError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

# Columns that are searched by a part of their text or by a whole value.
SEARCHED = {
    "drugs_info": ("med_name", "indication", "component", "company_name"),
    "disease": ("disease_name", "complication", "overview"),
}
BATCH = 500
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
        return list(
            islice((key for key, text in self.texts.get((table, column), {}).items() if found(text)), limit + 1)
        )

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
    from sqlalchemy import create_engine
    from sqlalchemy.exc import SQLAlchemyError

    catalogue = Catalogue()
    try:
        engine = create_engine(driver_url(url))
        with engine.connect() as connection:
            for table in _tables(connection):
                _read_table(connection, table, catalogue, limit, rng)
        engine.dispose()
    except (SQLAlchemyError, ImportError) as error:
        raise DataError(f"cannot read the database: {first_line(error)}") from None
    return catalogue


def driver_url(url: str) -> Any:
    """The URL with the driver this project installs, where it names none."""
    from sqlalchemy import make_url

    parsed = make_url(url)
    drivers = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
    return parsed.set(drivername=drivers.get(parsed.drivername, parsed.drivername))


def _tables(connection: Connection) -> list[Table]:
    from sqlalchemy import MetaData, Table, inspect

    present = inspect(connection).get_table_names() + inspect(connection).get_view_names()
    tables = []
    for name, name_column in NAME_COLUMN.items():
        if name not in present:
            raise DataError(f"the database has no table {name}; its tables: {', '.join(present) or 'none'}")
        table = Table(name, MetaData(), autoload_with=connection)
        missing = {"id", name_column} - set(table.c.keys())
        if missing:
            raise DataError(f"table {name} has no column {', '.join(sorted(missing))}; see docs/data.md")
        tables.append(table)
    return tables


def _read_table(connection: Connection, table: Table, catalogue: Catalogue, limit: int, rng: random.Random) -> None:
    from sqlalchemy import select

    name = table.name
    searched = [column for column in SEARCHED[name] if column in table.c]
    wanted = [table.c[column] for column in ("id", *searched, "source") if column in table.c]
    rows = connection.execute(select(*wanted).order_by(table.c.id)).mappings().all()
    strange = [row["id"] for row in rows if not isinstance(row["id"], int)]
    if strange:
        raise DataError(
            f"table {name}, column id: {strange[0]!r} is {type(strange[0]).__name__}, expected whole numbers"
        )
    titles = catalogue.titles[name] = {row["id"]: str(row[NAME_COLUMN[name]] or "") for row in rows}
    catalogue.names[name] = Counter(titles.values())
    catalogue.columns[name] = tuple(table.c.keys())
    for column in searched:
        catalogue.texts[name, column] = {row["id"]: str(row[column]) for row in rows if row[column]}
    askable = {row["id"] for row in rows if row.get("source") == FICTIONAL} or set(titles)
    catalogue.askable[name] = askable
    single = [
        key for key in titles if key in askable and catalogue.names[name][titles[key]] == 1 and is_plain(titles[key])
    ]
    drawn = sorted(rng.sample(single, limit)) if len(single) > limit else single
    catalogue.entities += _entities(connection, table, drawn, titles)


def _entities(connection: Connection, table: Table, keys: Sequence[int], titles: Mapping[int, str]) -> Iterator[Entity]:
    from sqlalchemy import select

    columns = [column for column in ASKABLE[table.name] if column in table.c]
    wanted = select(table.c.id, *(table.c[column] for column in columns)).order_by(table.c.id)
    for start in range(0, len(keys), BATCH):
        for key, *cells in connection.execute(wanted.where(table.c.id.in_(keys[start : start + BATCH]))):
            texts = {name: None if cell is None else str(cell) for name, cell in zip(columns, cells, strict=True)}
            yield Entity(table.name, key, titles[key], {name: text or "" for name, text in texts.items()}, texts)
