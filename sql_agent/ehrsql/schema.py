"""The tables that SQLite makes of an EHRSQL schema. All names are lower-case.

schema = read_schema(Path("mimic_iii.sql"))
schema.tables["labevents"].parents["itemid"]         # ("d_labitems", "itemid")
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from common.command import UsageError
from data.records import refusing

EXPECTED = "expected CREATE TABLE statements, such as EHRSQL's mimic_iii.sql"
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
COLUMNS = 'SELECT lower(name), type, "notnull", pk FROM pragma_table_info(?)'
# A column that refers to several tables, as EVENT_ID of COST, has the first one last
PARENTS = """SELECT lower("from"), lower("table"), lower("to")
FROM pragma_foreign_key_list(?) AS found, pragma_table_info(found."table") AS there
WHERE there.name = found."to" COLLATE NOCASE ORDER BY id DESC"""
UNIQUE = """SELECT lower(min(part.name)) FROM pragma_index_list(?) AS found, pragma_index_info(found.name) AS part
WHERE found."unique" GROUP BY found.name HAVING count(*) = 1"""


@dataclass(frozen=True)
class Column:
    """declared: its type. unique: no value twice."""

    declared: str
    nullable: bool
    unique: bool


@dataclass(frozen=True)
class Table:
    """parents: by column, the table and column that its values come from. key: the primary key."""

    name: str
    columns: dict[str, Column]
    parents: dict[str, tuple[str, str]]
    key: str


@dataclass
class Schema:
    """entities: tables that others refer to by a column of the same name: patients, no events.

    keys: names of all identifying columns: unique ones, and both ends of references.
    """

    tables: dict[str, Table]
    entities: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for table in self.tables.values():
            self.keys |= {name for name, column in table.columns.items() if column.unique}
            for column, (parent, key) in table.parents.items():
                self.keys |= {column, key}
                if column == key:
                    self.entities.add(parent)


def read_schema(path: Path) -> Schema:
    """Return the tables that the statements of a file make. Raises UsageError: none."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)  # the statements reach no other file
        with refusing(f"{path} cannot be read, {EXPECTED}", UsageError):
            database.executescript(path.read_text(encoding="utf-8"))
        names = [name for (name,) in database.execute(TABLES)]
        tables = {name.lower(): _table(name, database) for name in names}
    if not tables:
        raise UsageError(f"{path} makes no tables; {EXPECTED}")
    return Schema(tables)


def _table(name: str, database: sqlite3.Connection) -> Table:
    declared = database.execute(COLUMNS, [name]).fetchall()
    keys = [column for column, *_, is_key in declared if is_key]
    key = keys[0] if len(keys) == 1 else ""
    unique = {column for (column,) in database.execute(UNIQUE, [name])} | {key}
    columns = {}
    for column, sql_type, is_required, is_key in declared:
        columns[column] = Column(sql_type, not is_required and not is_key, column in unique)
    parents: dict[str, tuple[str, str]] = {}
    for column, table, there in database.execute(PARENTS, [name]):
        parents.setdefault(column, (table, there))
    return Table(name.lower(), columns, parents, key)
