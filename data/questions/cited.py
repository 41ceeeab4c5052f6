"""The cells that evidence names, read for many rows at once.

cells = CitedCells(open_database(url))
cells.fetch([[{"table": "disease", "row_id": 7, "field": "cause", "quote": "..."}]])
cells.find({"table": "disease", "row_id": 7, "field": "cause", "quote": "..."})     # Cited or Missing
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from data.database.schema import NAME_COLUMN
from tools.sql.database import Access, Database, StatementError

DEADLINE = 10.0  # seconds for one batch of keys
KEYS_AT_ONCE = 200
LARGEST_KEY = 2**63
KEPT_CHARACTERS = 13_000  # the tool keeps 40,000 bytes of a cell; a text shorter than this is whole


@dataclass(frozen=True)
class Cited:
    """A cell: its text, the name of the drug or disease in its row, and whether the tool may have cut it."""

    text: str
    name: str
    cut: bool


@dataclass(frozen=True)
class Missing:
    """No cell to compare with: `wrong` when the evidence itself is, else the database lacks it."""

    reason: str
    wrong: bool


class CitedCells:
    """Cells of the allowed tables by table, key and field; holds what was fetched last.

    Raises:
        DatabaseError: the database cannot be read.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.columns = {table: {column.name.lower() for column in database.columns(table)} for table in NAME_COLUMN}
        self._rows: dict[tuple[str, int], dict[str, Any]] = {}
        self._unread: dict[tuple[str, int], str] = {}
        self._known: dict[str, bool] = {}

    def fetch(self, evidence: Iterable[Sequence[dict[str, Any]]]) -> None:
        """Read every row that the items name, in place of what was held before."""
        self._rows, self._unread = {}, {}
        wanted: dict[str, tuple[set[int], set[str]]] = {table: (set(), set()) for table in NAME_COLUMN}
        for item in (item for items in evidence for item in items):
            place = self._place(item)
            if not isinstance(place, Missing):
                table, key, name = place
                wanted[table][0].add(key)
                wanted[table][1].add(name)
        for table, (keys, names) in wanted.items():
            ordered = sorted(keys)
            for start in range(0, len(ordered), KEYS_AT_ONCE):
                self._read(table, ordered[start : start + KEYS_AT_ONCE], sorted(names))

    def find(self, item: dict[str, Any]) -> Cited | Missing:
        """The cell an evidence item names; it must have been among those fetched last."""
        place = self._place(item)
        if isinstance(place, Missing):
            return place
        table, key, name = place
        if (table, key) in self._unread:
            return Missing(f"row {key} of {table} cannot be read: {self._unread[table, key]}", wrong=False)
        row = self._rows.get((table, key))
        if row is None:
            return Missing(f"the database has no row {key} in {table}", wrong=False)
        text = "" if row[name] is None else str(row[name])
        return Cited(text, str(row[NAME_COLUMN[table]]), len(text) >= KEPT_CHARACTERS)

    def has_entity(self, names: Iterable[str]) -> bool:
        """Whether a drug or a disease has one of the names."""
        return any(self._has(name) for name in names)

    def _has(self, name: str) -> bool:
        from sqlglot import exp

        if len(self._known) > 10_000:
            self._known.clear()
        if name not in self._known:
            found = 0
            for table, column in NAME_COLUMN.items():
                query = exp.select(exp.column(column)).from_(table).where(exp.column(column).eq(name)).limit(1)
                found += len(self._select(query.sql(dialect=self.database.dialect), table, 1))
            self._known[name] = bool(found)
        return self._known[name]

    def _place(self, item: dict[str, Any]) -> tuple[str, int, str] | Missing:
        table, key, name = item.get("table"), item.get("row_id"), item.get("field")
        if not table or key is None or not name:
            return Missing("a quote without table, row_id or field cannot be looked up", wrong=False)
        if table.lower() not in self.columns:
            return Missing(f"no table {table[:64]!r}; expected {' or '.join(self.columns)}", wrong=True)
        if name.lower() not in self.columns[table.lower()]:
            return Missing(f"{table} has no column {name[:64]!r}", wrong=True)
        number = row_key(key)
        if number is None:
            return Missing(f"row_id {str(key)[:64]!r} is no whole number", wrong=True)
        return table.lower(), number, name.lower()

    def _read(self, table: str, keys: list[int], names: list[str]) -> None:
        """Rows by key; where one cannot be read, each is read alone to find out which."""
        columns = list(dict.fromkeys(["id", NAME_COLUMN[table], *names]))
        sql = f"SELECT {', '.join(columns)} FROM {table} WHERE id IN ({', '.join(map(str, keys))})"
        try:
            for row in self._select(sql, table, len(keys)):
                self._rows[table, row[0]] = dict(zip(columns, row, strict=True))
        except StatementError as error:
            if len(keys) == 1:
                self._unread[table, keys[0]] = str(error)
            else:
                for key in keys:
                    self._read(table, [key], names)

    def _select(self, sql: str, table: str, most: int) -> list[tuple[Any, ...]]:
        """Our own statement, made of known names, numbers and escaped texts, on the tool's read-only connection."""
        access = Access(frozenset({table}), named=frozenset({table}))
        return self.database.read(sql, access, DEADLINE, most).rows


def row_key(value: Any) -> int | None:
    """The key as a whole number the databases can hold, or None."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_KEY:
        return value
    return None
