"""Read what questions can be asked about: the entities of both tables, and an index to search their texts.

Any database with the two tables will do. Names are read of every row; texts only of the entities that are asked about
(at most `limit` a table, drawn with the seed) and of the searched columns, which wait in a temporary file. So memory
grows with the number of names and of questions, not with the texts.

    with open_catalogue("sqlite:///data/medical.db", limit=5000, rng=random.Random(1)) as catalogue:
        catalogue.entities[0].fields["indication"]
        catalogue.find("drugs_info", "indication", "头痛", 4)
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from data.database.schema import ASKABLE, FICTIONAL, NAME_COLUMN
from data.load import DataError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

# Columns that `find` can search, and columns that are filtered by a whole value.
INDEXED = {
    "drugs_info": ("med_name", "indication", "component"),
    "disease": ("disease_name", "complication", "overview"),
}
FILTERED = {"drugs_info": ("company_name",)}
BATCH = 500
LONGEST_NAME = 40
# A name with one of these can be written neither into a LIKE pattern nor, in MySQL, into a quoted text as it is.
AWKWARD = frozenset("\\%_'\"\n\r\t")
UNSEEN = "\x00"


@dataclass(frozen=True)
class Entity:
    """One row of the database: its table, key, name and the texts of the columns that may be asked for.

    A field is "" where the cell is NULL; `null` names those columns.
    """

    table: str
    row_id: int
    name: str
    fields: Mapping[str, str]
    null: frozenset[str] = frozenset()

    def cell(self, column: str) -> str | None:
        """The cell as a query returns it."""
        return None if column in self.null else self.fields[column]


@dataclass
class Catalogue:
    """What is in the database.

    names: how many rows bear each name, by table. entities: those asked about, by table and key. titles: the name of
    every row, by table and key. askable: keys of all rows that may be asked about. values: the rows of each value of a
    FILTERED column.
    """

    names: dict[str, dict[str, int]] = field(default_factory=dict)
    titles: dict[str, dict[int, str]] = field(default_factory=dict)
    askable: dict[str, set[int]] = field(default_factory=dict)
    entities: list[Entity] = field(default_factory=list)
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    values: dict[tuple[str, str], dict[str, list[int]]] = field(default_factory=dict)
    index: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect(""))

    def find(self, table: str, column: str, keyword: str, limit: int) -> list[tuple[int, str]]:
        """Key and text of up to `limit` + 1 rows whose `column` holds the keyword; [] for a column not indexed."""
        if (table, column) not in self.indexed:
            return []
        sql = f"SELECT rowid, text FROM {table}_{column} WHERE text LIKE ? LIMIT ?"
        return sorted(self.index.execute(sql, [f"%{keyword}%", limit + 1]).fetchall())

    def texts(self, table: str, column: str, keys: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Key and text of the given rows of an indexed column, in the order of the keys; empty cells are left out."""
        if (table, column) in self.indexed:
            sql = f"SELECT rowid, text FROM {table}_{column} WHERE rowid = ?"
            for key in keys:
                yield from self.index.execute(sql, [key])

    def is_unknown(self, name: str) -> bool:
        """Whether no row of either table is called by the name or by one that holds it."""
        columns = NAME_COLUMN.items()
        return is_plain(name) and not any(self.find(table, column, name, 1) for table, column in columns)

    @property
    def indexed(self) -> set[tuple[str, str]]:
        """The pairs of table and column that `find` can search: INDEXED as far as the database has them."""
        return {
            (table, column) for table, present in self.columns.items() for column in INDEXED[table] if column in present
        }


@contextmanager
def open_catalogue(url: str, limit: int, rng: random.Random) -> Iterator[Catalogue]:
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
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise DataError(f"cannot read the database: {reason}") from None
    try:
        yield catalogue
    finally:
        catalogue.index.close()


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
    name, columns = table.name, tuple(table.c.keys())
    catalogue.columns[name] = columns
    sources = _read_names(connection, table, catalogue)
    only = FICTIONAL if FICTIONAL in sources.values() else None
    catalogue.askable[name] = {key for key in catalogue.titles[name] if only is None or sources.get(key) == only}
    for column in INDEXED[name]:
        if column in columns:
            _index(connection, table, column, catalogue)
    for column in FILTERED.get(name, ()):
        if column in columns:
            catalogue.values[name, column] = _values(connection, table, column, catalogue.askable[name])
    counts = catalogue.names[name]
    single = [key for key in sorted(catalogue.askable[name]) if counts[catalogue.titles[name][key]] == 1]
    plain = [key for key in single if is_plain(catalogue.titles[name][key])]
    drawn = sorted(rng.sample(plain, limit)) if len(plain) > limit else plain
    catalogue.entities += _entities(connection, table, drawn, catalogue)


def is_plain(name: str) -> bool:
    """Whether a name or value can stand in a question, a quoted text and a LIKE pattern alike."""
    return bool(name.strip()) and name == name.strip() and len(name) <= LONGEST_NAME and not AWKWARD & set(name)


def _read_names(connection: Connection, table: Table, catalogue: Catalogue) -> dict[int, str]:
    from sqlalchemy import select

    chosen = [table.c.id, table.c[NAME_COLUMN[table.name]]]
    chosen += [table.c.source] if "source" in table.c else []
    titles: dict[int, str] = {}
    counts: dict[str, int] = {}
    sources: dict[int, str] = {}
    for key, title, *source in connection.execute(select(*chosen).order_by(table.c.id)):
        titles[_key(key, table.name)] = title or ""
        counts[title or ""] = counts.get(title or "", 0) + 1
        if source:
            sources[key] = source[0]
    catalogue.titles[table.name], catalogue.names[table.name] = titles, counts
    return sources


def _key(value: Any, table: str) -> int:
    if isinstance(value, int):
        return value
    raise DataError(f"table {table}, column id: {value!r} is {type(value).__name__}, expected whole numbers")


def _index(connection: Connection, table: Table, column: str, catalogue: Catalogue) -> None:
    """SQLite's trigram index finds texts by any part of three characters or more without reading them all."""
    from sqlalchemy import select

    name = f"{table.name}_{column}"
    catalogue.index.execute(f"CREATE VIRTUAL TABLE {name} USING fts5(text, tokenize='trigram')")
    found = connection.execution_options(yield_per=BATCH).execute(select(table.c.id, table.c[column]))
    catalogue.index.executemany(f"INSERT INTO {name}(rowid, text) VALUES (?, ?)", ((k, str(t)) for k, t in found if t))


def _values(connection: Connection, table: Table, column: str, askable: set[int]) -> dict[str, list[int]]:
    """Every plain value with the keys of its rows; values that a row not asked about has too are left out."""
    from sqlalchemy import select

    keys: dict[str, list[int]] = {}
    for key, value in connection.execute(select(table.c.id, table.c[column]).order_by(table.c.id)):
        if isinstance(value, str) and is_plain(value):
            keys.setdefault(value, []).append(key)
    return {value: rows for value, rows in keys.items() if askable.issuperset(rows)}


def _entities(connection: Connection, table: Table, keys: Sequence[int], catalogue: Catalogue) -> Iterator[Entity]:
    from sqlalchemy import select

    columns = [column for column in ASKABLE[table.name] if column in table.c]
    wanted = select(table.c.id, *(table.c[column] for column in columns)).order_by(table.c.id)
    for start in range(0, len(keys), BATCH):
        part = keys[start : start + BATCH]
        for key, *texts in connection.execute(wanted.where(table.c.id.in_(part))):
            cells = dict(zip(columns, texts, strict=True))
            fields = {column: "" if text is None else str(text) for column, text in cells.items()}
            null = frozenset(column for column, text in cells.items() if text is None)
            yield Entity(table.name, key, catalogue.titles[table.name][key], fields, null)
