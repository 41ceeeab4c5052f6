"""The tables of an EHRSQL schema: columns, kinds of values, keys.

    tables = read_schema(Path("mimic_iii.sql"))          # or a tables.json, of one database
    tables["labevents"].parents["itemid"]                # ("d_labitems", "itemid")

Names are lower-case, as SQLite compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sql_agent.ehrsql.published import PublishedError, read_json, read_text

KINDS = {
    "time": ("TIMESTAMP", "DATE", "TIME"),
    "integer": ("INT",),
    "real": ("DOUBLE", "NUMERIC", "DECIMAL", "REAL", "FLOAT"),
}
LISTED_KINDS = {"number": ("integer", "INT"), "time": ("time", "TIMESTAMP")}  # of a tables.json
LISTED = "expected table_names_original, column_names_original, column_types and keys"


@dataclass(frozen=True)
class Column:
    """kind: "time", "integer", "real" or "text". sql_type: as the schema declares it. unique: no
    two rows may have the same value.
    """

    kind: str
    sql_type: str
    nullable: bool
    unique: bool


@dataclass(frozen=True)
class Table:
    """parents: by column, the table and column that its values come from. key: the primary key."""

    name: str
    columns: dict[str, Column]
    parents: dict[str, tuple[str, str]] = field(default_factory=dict)
    key: str = ""


Tables = Mapping[str, Table]


def read_schema(path: Path) -> dict[str, Table]:
    """Return the tables that a file's CREATE TABLE statements make, or that its tables.json lists.

    Raises:
        PublishedError: not readable, no SQL, without tables, or a tables.json of several databases.
    """
    if path.suffix == ".json":
        return _listed_tables(path)
    expected = "expected CREATE TABLE statements, such as EHRSQL's mimic_iii.sql"
    try:
        statements = sqlglot.parse(read_text(path), read="postgres")
    except SqlglotError as error:
        line = str(error).partition("\n")[0]
        raise PublishedError(f"{path} is no SQL: {line[:120]}; {expected}") from None
    created = [
        statement
        for statement in statements
        if isinstance(statement, exp.Create) and isinstance(statement.this, exp.Schema)
    ]
    if not created:
        raise PublishedError(f"{path} makes no tables; {expected}")
    tables = [_table(statement.this) for statement in created]
    return {table.name: table for table in tables}


def entities(tables: Tables) -> set[str]:
    """Return the tables that others refer to by a column of the same name: patients, admissions,
    dictionaries. Tables of events are not among them.
    """
    return {
        parent
        for table in tables.values()
        for column, (parent, key) in table.parents.items()
        if column == key
    }


def key_columns(tables: Tables) -> set[str]:
    """Return the names of all columns that identify something: unique ones, and both ends of
    references.
    """
    names = set()
    for table in tables.values():
        names |= {name for name, column in table.columns.items() if column.unique}
        names |= {*table.parents, *(key for _, key in table.parents.values())}
    return names


def _listed_tables(path: Path) -> dict[str, Table]:
    """Return the tables of a tables.json, in the form of Spider: columns and keys by their numbers.

    It does not say what may be NULL: here all but keys may. What others refer to is unique.
    """
    listed = read_json(path)
    listed = listed if isinstance(listed, list) else [listed]
    if len(listed) != 1:
        raise PublishedError(
            f"{path} lists {len(listed)} databases; give the .sql file of the one that is asked"
        )
    try:
        names = [name.lower() for name in listed[0]["table_names_original"]]
        columns = [
            (names[at] if at >= 0 else "", name.lower())
            for at, name in listed[0]["column_names_original"]
        ]
        primary = {columns[at] for at in listed[0]["primary_keys"]}
        references = [
            (columns[child], columns[parent]) for child, parent in listed[0]["foreign_keys"]
        ]
        types = dict(zip(columns, listed[0]["column_types"], strict=True))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise PublishedError(f"{path} is no tables.json: {error!r}; {LISTED}") from None
    unique = primary | {parent for _, parent in references}
    keys = unique | {child for child, _ in references}
    tables = {name: Table(name, {}, key=_primary(name, primary)) for name in names}
    for column, kind in types.items():
        if column[0]:
            tables[column[0]].columns[column[1]] = Column(
                *LISTED_KINDS.get(kind, ("text", "TEXT")), column not in keys, column in unique
            )
    for (table, column), parent in references:
        tables[table].parents.setdefault(column, parent)
    return tables


def _primary(table: str, primary: Iterable[tuple[str, str]]) -> str:
    return next((column for name, column in primary if name == table), "")


def _table(schema: exp.Schema) -> Table:
    table = Table(schema.this.name.lower(), {})
    key = ""
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            name = part.name.lower()
            table.columns[name] = _column(part)
            key = name if _has(part, exp.PrimaryKeyColumnConstraint) else key
        elif isinstance(part, exp.ForeignKey):
            parent = part.args["reference"].this
            # A column that refers to several tables, as EVENT_ID of COST, keeps the first
            table.parents.setdefault(
                part.expressions[0].name.lower(),
                (parent.this.name.lower(), parent.expressions[0].name.lower()),
            )
    return Table(table.name, table.columns, table.parents, key)


def _column(part: exp.ColumnDef) -> Column:
    declared = part.kind.sql("postgres").upper() if part.kind else "TEXT"
    kind = next(
        (kind for kind, words in KINDS.items() if any(word in declared for word in words)), "text"
    )
    primary = _has(part, exp.PrimaryKeyColumnConstraint)
    return Column(
        kind,
        declared,
        nullable=not primary and not _has(part, exp.NotNullColumnConstraint),
        unique=primary or _has(part, exp.UniqueColumnConstraint),
    )


def _has(part: exp.ColumnDef, constraint: type[exp.Expr]) -> bool:
    return any(isinstance(found.kind, constraint) for found in part.constraints)
