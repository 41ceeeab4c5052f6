"""The SQL tool as verl's own tool agent loop takes it (`multi_turn.function_tool_path`); verl imports this file."""

from __future__ import annotations

from functools import cache
from typing import Any

from verl.tools.function_tool import function_tool

from common.settings import load_settings
from sql_agent.prompts import TOOL, TOOL_NAME
from tools.sql.query import QueryTool


@cache
def _tool() -> QueryTool:
    return QueryTool(load_settings().database_url)


@function_tool(TOOL_NAME, schema=TOOL)
def query(sql: str = "", **_: Any) -> str:
    """What the agent's tool returns for the same query."""
    return _tool().run(sql).to_json()
