"""The cells that evidence names.

cells = CitedCells(open_database(url))
cells.find({"table": "disease", "row_id": 7, "field": "cause", "quote": "..."})     # text or Missing
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sql_agent.tables import NAME_COLUMN
from tools.sql.database import Access, Database, StatementError

DEADLINE = 10.0  # seconds for one row
LARGEST_KEY = 2**63


class Missing(NamedTuple):
    """No cell to compare with. `wrong`: the evidence is at fault, otherwise the database lacks it."""

    reason: str
    wrong: bool


class CitedCells:
    """Cells by table, key and field. Only our own tables have a known key.

    Raises DatabaseError: the database cannot be read.
    """

    def __init__(self, database: Database, tables: Iterable[str] = NAME_COLUMN) -> None:
        self.database = database
        self.tables = frozenset(tables)
        self.columns = {}
        for table in NAME_COLUMN:
            if table in self.tables:
                self.columns[table] = {column.name.lower() for column in database.columns(table)}

    def find(self, item: dict[str, Any]) -> str | Missing:
        key = item.get("row_id")
        table = (item.get("table") or "").lower()
        field = (item.get("field") or "").lower()
        if not table or key is None or not field:
            return Missing("a quote without table, row_id or field cannot be looked up", False)
        if table not in self.columns:
            if table in self.tables:
                return Missing(f"quotes of table {table[:64]} cannot be looked up", False)
            known = " or ".join(self.columns or sorted(self.tables))
            return Missing(f"no table {item['table'][:64]!r}; expected {known}", True)
        if field not in self.columns[table]:
            return Missing(f"{table} has no column {item['field'][:64]!r}", True)
        number = row_key(key)
        if number is None:
            return Missing(f"row_id {str(key)[:64]!r} is not a whole number", True)
        # Made of known names and a number
        sql = f"SELECT {field} FROM {table} WHERE id = {number}"
        access = Access(frozenset({table}), named=frozenset({table}))
        try:
            rows = self.database.read(sql, access, DEADLINE, 1).rows
        except StatementError as error:
            return Missing(f"row {number} of {table} cannot be read: {error}", False)
        if not rows:
            return Missing(f"the database has no row {number} in {table}", False)
        return "" if rows[0][0] is None else str(rows[0][0])


def row_key(value: Any) -> int | None:
    """Return the key as a whole number that databases can hold, or None."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_KEY
    return value if whole else None
