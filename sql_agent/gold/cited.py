"""The cells that evidence names.

cells = CitedCells(open_database(url))
cells.find({"table": "disease", "row_id": 7, "field": "cause", "quote": "..."})     # (name, text) or Missing
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sql_agent.tables import NAME_COLUMN
from tools.sql.database import Access, Database, StatementError

DEADLINE = 10.0  # seconds for one row
LARGEST_KEY = 2**63
# The tool keeps 40,000 bytes of a cell; a text shorter than this is complete
KEPT_CHARACTERS = 13_000


class Missing(NamedTuple):
    """There is no cell to compare with: `wrong` if the evidence is at fault, else the database
    lacks it.
    """

    reason: str
    wrong: bool


class CitedCells:
    """Cells of the tables that may be read, by table, key and field. Only our own tables have a
    known key and name column.

    Raises:
        DatabaseError: the database cannot be read.
    """

    def __init__(self, database: Database, tables: Iterable[str] = NAME_COLUMN) -> None:
        self.database = database
        self.tables = frozenset(tables)
        own = [table for table in NAME_COLUMN if table in self.tables]
        self.columns = {
            table: {column.name.lower() for column in database.columns(table)} for table in own
        }

    def find(self, item: dict[str, Any]) -> tuple[str, str] | Missing:
        """Return the name of the drug or disease that an evidence item cites, and the text of the
        cell it names.
        """
        key = item.get("row_id")
        table = (item.get("table") or "").lower()
        field = (item.get("field") or "").lower()
        if not table or key is None or not field:
            return Missing(
                "a quote without table, row_id or field cannot be looked up", wrong=False
            )
        if table in self.tables - self.columns.keys():
            return Missing(f"quotes of table {table[:64]} cannot be looked up", wrong=False)
        if table not in self.columns:
            known = self.columns or sorted(self.tables)
            return Missing(
                f"no table {item['table'][:64]!r}; expected {' or '.join(known)}", wrong=True
            )
        if field not in self.columns[table]:
            return Missing(f"{table} has no column {item['field'][:64]!r}", wrong=True)
        number = row_key(key)
        if number is None:
            return Missing(f"row_id {str(key)[:64]!r} is no whole number", wrong=True)
        try:
            rows = self._select(
                f"SELECT {NAME_COLUMN[table]}, {field} FROM {table} WHERE id = {number}", table
            )
        except StatementError as error:
            return Missing(f"row {number} of {table} cannot be read: {error}", wrong=False)
        if not rows:
            return Missing(f"the database has no row {number} in {table}", wrong=False)
        name, text = ("" if cell is None else str(cell) for cell in rows[0])
        return name, text

    def has_entity(self, names: Iterable[str]) -> bool:
        """Return whether a drug or a disease has one of the names."""
        from sqlglot import exp

        # A statement cannot hold U+0000, and no name contains it
        sayable = [name for name in names if "\0" not in name]
        for table in self.columns if sayable else ():
            column = NAME_COLUMN[table]
            query = (
                exp.select(column).from_(table).where(exp.column(column).isin(*sayable)).limit(1)
            )
            if self._select(query.sql(dialect=self.database.dialect), table):
                return True
        return False

    def _select(self, sql: str, table: str) -> list[tuple[Any, ...]]:
        """Return the rows of our own statement, made of known names, numbers and escaped texts, on
        the tool's read-only connection.
        """
        return self.database.read(
            sql, Access(frozenset({table}), named=frozenset({table})), DEADLINE, 1
        ).rows


def row_key(value: Any) -> int | None:
    """Return the key as a whole number the databases can hold, or None."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_KEY
    return value if whole else None
