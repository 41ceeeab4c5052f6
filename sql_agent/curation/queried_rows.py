"""Finds the rows an agent's queries read, even if a query selected neither key nor name.

    finder = RowFinder("sqlite:///data/medical.db")
    finder.rows_of("SELECT dosage FROM drugs_info WHERE med_name LIKE '%布洛芬%'")
    # [QueriedRow(table="drugs_info", row_id=7, name="布洛芬片", cells={"dosage": "..."})]

Each SELECT runs again through the guarded tool, with its conditions and more columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sql_agent.tables import NAME_COLUMN
from tools.sql.query import Limits, QueryTool

# Complete cells as a rule, and all rows the agent can have seen.
LIMITS = Limits(deadline=5.0, max_rows=20, max_cell=4_000, max_chars=400_000)
KEY = "id"


@dataclass(frozen=True)
class QueriedRow:
    """A row that a query read. name: of the drug or disease. cells: the columns it looked at."""

    table: str
    row_id: int
    name: str
    cells: dict[str, str]

    @property
    def key(self) -> tuple[str, int]:
        return self.table, self.row_id


def merged(rows: Iterable[QueriedRow]) -> list[QueriedRow]:
    """Return the rows of several queries, each once, with the cells of all."""
    by_key: dict[tuple[str, int], QueriedRow] = {}
    for row in rows:
        known = by_key.setdefault(row.key, row)
        by_key[row.key] = replace(row, cells=known.cells | row.cells)
    return list(by_key.values())


class RowFinder:
    """Finds rows in one database, safe for many threads. Raises DatabaseError: it cannot be read."""

    def __init__(self, database_url: str) -> None:
        self.tool = QueryTool(database_url, limits=LIMITS)
        database = self.tool.database()
        self.dialect = database.dialect
        self.columns = {}
        for table in NAME_COLUMN:
            self.columns[table] = [column.name.lower() for column in database.columns(table)]

    def rows_of(self, sql: str) -> list[QueriedRow]:
        """Return the rows that a statement reads, or [] if its form does not allow finding them."""
        try:
            tree = sqlglot.parse_one(sql, read=self.dialect)
        except SqlglotError:  # the tool's guard reports this to the agent. There is nothing to find
            return []
        found: list[QueriedRow] = []
        for select in tree.find_all(exp.Select):
            clauses = [select.args.get("from_"), *(select.args.get("joins") or [])]
            sources = [clause.this for clause in clauses if clause]
            tables = [source for source in sources if isinstance(source, exp.Table)]
            ours = [table for table in tables if table.name.lower() in self.columns]
            if len(ours) == len(sources):
                for table in ours:
                    found += self._asked_again(select, table)
        return merged(found)

    def _asked_again(self, select: exp.Select, source: exp.Table) -> Iterator[QueriedRow]:
        table = source.name.lower()
        name_column = NAME_COLUMN[table]
        looked_at = self.columns[table]
        if not any(isinstance(shown, exp.Star) for shown in select.expressions):
            used = set()
            for named in select.find_all(exp.Column):
                if named.table.lower() in ("", source.alias_or_name.lower()):
                    used.add(named.name.lower())
            looked_at = [column for column in looked_at if column in used]
        columns = list(dict.fromkeys([KEY, name_column, *looked_at]))
        asked = select.copy()
        grouping = ("group", "having", "order") if select.args.get("group") else ()
        for clause in ("distinct", "with_", *grouping):
            asked.set(clause, None)
        asked.set("expressions", [exp.column(column, source.alias_or_name) for column in columns])
        for key, *values in self.tool.run(asked.sql(dialect=self.dialect)).rows:
            cells = {}
            for column, value in zip(columns[1:], values, strict=True):
                if value is not None:
                    cells[column] = str(value)
            if isinstance(key, int):
                yield QueriedRow(table, key, cells.get(name_column, ""), cells)
