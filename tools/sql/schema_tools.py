"""A second, small tool set for agents on unfamiliar databases: which tables there are, and what their columns hold.

    tools = SchemaTools(QueryTool(url))
    tools.list_tables()                       # JSON text
    tools.describe_table("drugs_info")

Both look at the allowed tables only, and the samples come through the query tool: same connection, same limits.
"""

from __future__ import annotations

import json
from typing import Any

from tools.sql.query import QueryTool
from tools.sql.result import neutralise, shorten

SAMPLES = 3  # values a column
SAMPLE_CHARACTERS = 20
COMMENT_CHARACTERS = 60


class SchemaTools:
    """Lists and describes the tables a query tool may read.

    Both methods return JSON text with `status`, and raise DatabaseError when the database cannot be used.
    """

    def __init__(self, tool: QueryTool) -> None:
        self._tool = tool

    def list_tables(self) -> str:
        """{"status": "success", "tables": [name, ...]}."""
        self._tool.database()
        return _text(status="success", tables=sorted(self._tool.allowed_tables))

    def describe_table(self, table: str) -> str:
        """{"status": "success", "table": name, "columns": [{"name", "type", "comment", "samples"}, ...]}.

        A table that may not be read gives status "error" with the allowed ones.
        """
        database = self._tool.database()
        name = str(table).strip().lower()
        if name not in self._tool.allowed_tables:
            known = "、".join(sorted(self._tool.allowed_tables))
            return _text(status="error", error=f"没有表 {shorten(neutralise(name), 60)}，可用的表：{known}。")
        samples = self._samples(name)
        columns = []
        for column in database.columns(name):
            entry = {"name": column.name, "type": column.type, "comment": column.comment[:COMMENT_CHARACTERS]}
            columns.append(
                {key: neutralise(value) for key, value in entry.items() if value} | _of(column.name, samples)
            )
        return _text(status="success", table=name, columns=columns)

    def _samples(self, table: str) -> dict[str, list[Any]]:
        result = self._tool.run(f"SELECT * FROM {table} LIMIT {SAMPLES}")
        return {name: [row[at] for row in result.rows] for at, name in enumerate(result.columns)}


def _of(column: str, samples: dict[str, list[Any]]) -> dict[str, list[Any]]:
    found = [value for value in samples.get(column, []) if value is not None]
    shown = [shorten(value, SAMPLE_CHARACTERS) if isinstance(value, str) else value for value in found]
    return {"samples": shown} if shown else {}


def _text(**message: Any) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))
