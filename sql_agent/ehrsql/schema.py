"""The tables of an EHRSQL schema: columns, kinds of values, keys. Names are lower-case.

tables = read_schema(Path("mimic_iii.sql"))
tables["labevents"].parents["itemid"]                # ("d_labitems", "itemid")
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from common.command import UsageError
from sql_agent.ehrsql.published import read_text

KINDS = {
    "time": ("TIMESTAMP", "DATE", "TIME"),
    "integer": ("INT",),
    "real": ("DOUBLE", "NUMERIC", "DECIMAL", "REAL", "FLOAT"),
}


@dataclass(frozen=True)
class Column:
    """kind: "time", "integer", "real" or "text". sql_type: as declared. unique: no value twice."""

    kind: str
    sql_type: str
    nullable: bool
    unique: bool


@dataclass
class Table:
    """parents: by column, the table and column that its values come from. key: the primary key."""

    name: str
    columns: dict[str, Column] = field(default_factory=dict)
    parents: dict[str, tuple[str, str]] = field(default_factory=dict)
    key: str = ""


Tables = Mapping[str, Table]


def read_schema(path: Path) -> dict[str, Table]:
    """Return the tables of CREATE TABLE statements. Raises UsageError: it has none."""
    expected = "expected CREATE TABLE statements, such as EHRSQL's mimic_iii.sql"
    try:
        statements = sqlglot.parse(read_text(path), read="postgres")
    except SqlglotError as error:
        line = str(error).partition("\n")[0]
        raise UsageError(f"{path} is not SQL: {line[:120]}; {expected}") from None
    tables = {}
    for statement in statements:
        if isinstance(statement, exp.Create) and isinstance(statement.this, exp.Schema):
            table = _table(statement.this)
            tables[table.name] = table
    if not tables:
        raise UsageError(f"{path} makes no tables; {expected}")
    return tables


def entities(tables: Tables) -> set[str]:
    """Return the tables that others refer to by a column of the same name: patients, no events."""
    found = set()
    for table in tables.values():
        for column, (parent, key) in table.parents.items():
            if column == key:
                found.add(parent)
    return found


def key_columns(tables: Tables) -> set[str]:
    """Return the names of all identifying columns: unique ones, and both ends of references."""
    names = set()
    for table in tables.values():
        names |= {name for name, column in table.columns.items() if column.unique}
        names |= {*table.parents, *(key for _, key in table.parents.values())}
    return names


def _table(schema: exp.Schema) -> Table:
    table = Table(schema.this.name.lower())
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            declared = part.kind.sql("postgres").upper() if part.kind else "TEXT"
            kinds = [
                kind for kind, words in KINDS.items() if any(word in declared for word in words)
            ]
            constraints = {type(found.kind) for found in part.constraints}
            is_key = exp.PrimaryKeyColumnConstraint in constraints
            table.columns[part.name.lower()] = Column(
                kinds[0] if kinds else "text",
                declared,
                nullable=not is_key and exp.NotNullColumnConstraint not in constraints,
                unique=is_key or exp.UniqueColumnConstraint in constraints,
            )
            if is_key:
                table.key = part.name.lower()
        elif isinstance(part, exp.ForeignKey):
            parent = part.args["reference"].this
            there = parent.this.name.lower(), parent.expressions[0].name.lower()
            # A column that refers to several tables, as EVENT_ID of COST, keeps the first
            table.parents.setdefault(part.expressions[0].name.lower(), there)
    return table
