"""The words the policy reads: system prompt and tool description, with a version.

The bundled tiny model learned exactly these words, so a change raises `PROMPT_VERSION` and rebuilds
`sql_agent/tiny_model/` (`.venv/bin/python -m training.cold_start sql`) in the same commit. A test checks it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sql_agent.tables import TABLES

PROMPT_VERSION = "2"

TOOL_NAME = "query_database_by_sql"

# The columns of each table that the policy reads about, in order. `source` is left out
COLUMNS = {
    table: tuple(name for name in columns if name != "source") for table, columns in TABLES.items()
}

TASK = (
    "你是医药数据库问答助手。"
    "先用工具查询数据库,再照录查询结果的原文简短作答,不要改写;查不到就如实说明,不要编造。"
)


def system_prompt(columns: Mapping[str, Iterable[str]]) -> str:
    """Return the system prompt for a database whose columns are given by table."""
    return "\n".join([TASK, *table_lines(columns)])


def table_lines(columns: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a line for each table, with its columns."""
    return [f"{table}({', '.join(names)})" for table, names in columns.items()]


SYSTEM_PROMPT = system_prompt(COLUMNS)


def tool_spec(name: str, description: str, **texts: str) -> dict[str, Any]:
    """Return a tool in the chat-completions form. All its parameters are required texts."""
    properties = {
        parameter: {"type": "string", "description": words} for parameter, words in texts.items()
    }
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(texts),
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


TOOL = tool_spec(
    TOOL_NAME,
    "执行一条只读的 SELECT 语句,返回 JSON;出错时按 error 的提示改写后重试。",
    sql="一条 SQL SELECT 语句",
)


def first_messages(question: str, system: str = SYSTEM_PROMPT) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]
