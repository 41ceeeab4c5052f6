"""The words the policy reads: system prompt and tool description, with a version.

Everything else the policy sees is the question and the tool's JSON (`tools/sql/query.py`). The bundled tiny model is
taught on exactly these words, so whoever changes one of them raises `PROMPT_VERSION` and rebuilds
`sql_agent/tiny_model/` (`python -m training.cold_start sql`) in the same commit; a test compares both.
"""

from __future__ import annotations

from typing import Any

PROMPT_VERSION = "1"

TOOL_NAME = "query_database_by_sql"

_COLUMNS = {
    "drugs_info": (
        "id med_name med_name_initial med_barcode med_approval component form dosage indication "
        "adverse_reactions contraindications precautions company_name description mechanism_action cate_name "
        "drug_interactions storage pack period approve_code status created_at"
    ),
    "disease": (
        "id disease_name overview clinical_manif complication epidemiology examination treatment cause "
        "diagnosis differ_diag prevention prognosis create_at update_at"
    ),
}
COLUMNS: dict[str, tuple[str, ...]] = {table: tuple(names.split()) for table, names in _COLUMNS.items()}
"""The tables the tool may read, with all their columns in the database's order; a test compares them with it."""

NAME_COLUMNS = {"drugs_info": "med_name", "disease": "disease_name"}
"""The column of each table that names its rows."""

_TABLES = "\n".join(f"{table}({', '.join(columns)})" for table, columns in COLUMNS.items())

SYSTEM_PROMPT = f"""你是医药数据库问答助手。先用工具查询数据库,再依据查询结果用中文简短作答;查不到就如实说明,不要编造。
{_TABLES}"""


def _function(name: str, description: str, **texts: str) -> dict[str, Any]:
    """A tool as the chat-completions API describes it; all its parameters are texts, and required."""
    properties = {parameter: {"type": "string", "description": words} for parameter, words in texts.items()}
    required = {"required": list(texts)} if texts else {}
    parameters = {"type": "object", "properties": properties, **required, "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOL = _function(
    TOOL_NAME, "执行一条只读的 SELECT 语句,返回 JSON;出错时按 error 的提示改写后重试。", sql="一条 SQL SELECT 语句"
)
SCHEMA_TOOLS = (
    _function("list_tables", "列出可以查询的表,返回 JSON。"),
    _function("describe_table", "列出一张表的列:名称、类型、说明和样例值,返回 JSON。", table="表名"),
)
"""Tools for databases the policy was not trained on, offered when DATABASE_TOOLS=schema; named as in SchemaTools."""


def first_messages(question: str) -> list[dict[str, str]]:
    """Return the messages every episode begins with, as OpenAI dicts."""
    return [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": question}]
