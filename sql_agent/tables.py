"""The two tables of the medical database, as listed in `tables.toml`.

Every column but `id` is text. The last, `source`, says where a row comes from: "textbook" (a real
entity, general facts), "fictional" (made by rule), else data a user brought.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from sqlalchemy import Column, Connection, Index, Integer, MetaData, String, Table, Text
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateColumn

from common.toml import table_beside

_LISTED = table_beside(__file__, "tables.toml")
# By table and column: the Chinese word that is the column's comment in the database, and other
# words for it.
WORDS: dict[str, dict[str, list[str]]] = {name: table["columns"] for name, table in _LISTED.items()}
TABLES = {
    table: {column: words[0] for column, words in columns.items()}
    for table, columns in WORDS.items()
}
TABLE_WORDS: dict[str, list[str]] = {name: table["words"] for name, table in _LISTED.items()}
NAME_COLUMN: dict[str, str] = {name: table["name"] for name, table in _LISTED.items()}
# The columns questions ask about.
ASKABLE: dict[str, list[str]] = {name: table["askable"] for name, table in _LISTED.items()}

NAME_LENGTH = 255
SOURCE_LENGTH = 32

BATCH = 5_000
Cells = dict[str, str | int | None]  # a row of a table


def metadata() -> MetaData:
    """Return both tables as SQLAlchemy metadata, with comments and an index on the name.

    A search for a part of a name (`LIKE '%...%'`) reads the index instead of wide rows. It is not
    unique: several companies sell the same drug.
    """
    tables = MetaData()
    for table, columns in TABLES.items():
        name_column = NAME_COLUMN[table]
        # MySQL indexes no unbounded text, and its TEXT ends at 64 KB.
        kinds: dict[str, Any] = {
            "id": Integer,
            name_column: String(NAME_LENGTH),
            "source": String(SOURCE_LENGTH),
        }
        text = Text().with_variant(LONGTEXT, "mysql", "mariadb")
        fields = []
        for name, label in columns.items():
            field = Column(name, kinds.get(name, text), comment=label, autoincrement=False)
            field.primary_key = name == "id"
            field.nullable = name not in ("id", name_column)
            fields.append(field)
        index = Index(f"{table}_{name_column}", name_column)
        Table(table, tables, *fields, index, mysql_charset="utf8mb4")
    return tables


@compiles(CreateColumn, "sqlite")
def _with_comment(element: Any, compiler: Any, **options: Any) -> str:
    """Put a column's comment into CREATE TABLE, which SQLite keeps as its only comments."""
    text = compiler.visit_create_column(element, **options)
    comment = element.element.comment
    return f"{text} /* {comment} */" if text and comment else text


def insert_rows(connection: Connection, table: Table, rows: Iterable[Cells]) -> int:
    source = iter(rows)
    count = 0
    while batch := list(islice(source, BATCH)):
        connection.execute(table.insert(), batch)
        count += len(batch)
    return count
