"""Drafts a plain Chinese answer (`阿朵片的适应症：...`) from gold rows, gold SQL or quotes.

A row without gold stays without an answer and is judged without a reference.
"""

import re
from collections import ChainMap
from collections.abc import Iterable
from typing import Any

from common.terminal import watched
from sql_agent.gold.checker import SEARCHES, gold_tool, without_key
from sql_agent.gold.markup import plain
from sql_agent.intake.question_files import Row, count_without_reference, nested, statements
from sql_agent.tables import NAME_COLUMN, TABLES
from tools.sql.query import QueryResult, QueryTool

LABELS = ChainMap(*TABLES.values())
NAMES = frozenset(NAME_COLUMN.values())
COUNTED = re.compile(r"count\(.*\)")
NOTHING_FOUND = "数据库中没有找到相关内容。"


def fill_answers(
    rows: Iterable[Row], database_url: str, tables: Iterable[str] = tuple(TABLES)
) -> int:
    """Fill in missing answers that gold can give, and return how many. Raises DatabaseError."""
    tool = gold_tool(database_url, tables)
    bare = [row for row in rows if not row["answer"]]
    for row in watched(bare, "drafting answers"):
        row["answer"] = draft_answer(row, tool)
    return len(bare) - count_without_reference(bare)


def draft_answer(row: Row, tool: QueryTool) -> str:
    """Return the answer from `structured_gt`, else the gold SQL, else the quotes, else "".

    Raises DatabaseError: the database is needed and cannot be read.
    """
    names = nested(row, "entities")
    results: list[QueryResult] = []
    if len(names) > 1 or not row["structured_gt"]:
        results = [tool.run(statement) for statement in statements(row)]
    # The rows of one statement come in the database's order, not in that of the names
    is_one_each = len(results) == len(names) and all(len(result.rows) == 1 for result in results)
    names_of_rows = names if len(names) < 2 or not results or is_one_each else []
    if row["structured_gt"]:
        return from_table(nested(row, "structured_gt"), names_of_rows)
    table = _together(results)
    is_nothing = row["task_type"] == "unanswerable" and not any(one.rows for one in results)
    if table["rows"] or (row["sql"] and is_nothing):
        return from_table(table, names_of_rows)
    evidence = nested(row, "evidence")
    if row["task_type"] in SEARCHES:  # a quote shows why a drug was found, but not its name
        names = [name for name in names if name not in row["question"]]
        evidence = evidence if len(names) == len(evidence) else []
    return from_quotes(evidence, names)


def _together(results: list[QueryResult]) -> dict[str, Any]:
    """Return results as one table, without rows if one fails or is cut, or columns differ."""
    rows: list[Any] = []
    for result in results:
        is_cut = result.count > len(result.rows)
        if not result.ok or is_cut or result.columns != results[0].columns:
            return {"columns": [], "rows": []}
        rows += result.rows
    return without_key(QueryResult(results[0].columns if results else [], rows, len(rows)))


def from_table(gold: dict[str, Any], names: list[str]) -> str:
    """Return the answer that states a result. names: the entities asked about."""
    columns = [column.lower() for column in gold["columns"]]
    lines = [["" if cell is None else plain(str(cell)) for cell in line] for line in gold["rows"]]
    if not any(map(any, lines)):
        return NOTHING_FOUND
    is_count = len(columns) == 1 and (columns[0] == "count" or COUNTED.fullmatch(columns[0]))
    if is_count and len(lines) == 1:
        return f"共有{lines[0][0]}个。"
    if len(columns) == 1 and columns[0] in NAMES:
        return f"符合条件的有：{'、'.join(line[0] for line in lines if line[0])}。"
    about = names if len(names) == len(lines) else [""] * len(lines)
    named = [place for place, column in enumerate(columns) if column in NAMES]
    if named:
        del columns[named[0]]
        about = [line.pop(named[0]) for line in lines]
    said = []
    for name, line in zip(about, lines, strict=True):
        cells = zip(columns, line, strict=True)
        said += [_sentence(name, column, cell) for column, cell in cells if cell]
    return "\n".join(said)


def from_quotes(evidence: list[dict[str, Any]], names: list[str]) -> str:
    """Return the answer that states the quotes, each once. names: the entities asked about."""
    rows = {(item.get("table"), str(item["row_id"])) for item in evidence if item.get("row_id")}
    if len(names) == 1:
        names = names * len(evidence)
    elif len(names) != len(evidence) or 0 < len(rows) < len(names):  # several quotes of one row
        names = [""] * len(evidence)
    said = {}
    for name, item in zip(names, evidence, strict=True):
        if quote := plain(item["quote"]):
            said[_sentence(name, item.get("field") or "", quote)] = True
    return "\n".join(said)


def _sentence(name: str, column: str, text: str) -> str:
    label = LABELS.get(column.lower(), column.lower())
    about = "的".join(part for part in (name, label) if part)
    return f"{about}：{text}" if about else text
