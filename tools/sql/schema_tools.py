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
        result = self._tool.run(f"SELECT * FROM {name} LIMIT 3")
        samples = {column: [row[at] for row in result.rows] for at, column in enumerate(result.columns)}
        columns = []
        for column in database.columns(name):
            described = {"name": column.name, "type": column.type, "comment": column.comment[:60]}
            entry: dict[str, Any] = {key: neutralise(value) for key, value in described.items() if value}
            found = [value for value in samples.get(column.name, []) if value is not None]
            if found:
                entry["samples"] = [shorten(value, 20) if isinstance(value, str) else value for value in found]
            columns.append(entry)
        return _text(status="success", table=name, columns=columns)


def _text(**message: Any) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))
