"""The typed answer of a query whose rows are flattened into a list of texts.

gold_of_query("select count(*)>0 from lab", ["1"])                           # Gold("boolean", True)
"""

import re
from collections.abc import Sequence
from typing import Any

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from code_agent.graders import Gold

WHOLE = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2})?)?")

YES_OR_NO = (exp.Predicate, exp.Connector, exp.Not)


def gold_of_query(query: str, answer: Sequence[Any]) -> Gold:
    """Return the typed answer. An empty list becomes an empty set, which `[]` answers."""
    texts = [str(value) for value in answer]
    if not texts:
        return Gold("set", (), items=("text",))
    tree = _tree(query)
    selected = tree.selects if isinstance(tree, exp.Query) else []
    columns = len(selected)
    is_ordered = orders(query)
    # `select count(*)>0 from ...` is a question answered with yes or no
    is_question = columns == 1 and isinstance(selected[0].unalias().unnest(), YES_OR_NO)
    if is_question and texts in (["0"], ["1"]):
        return Gold("boolean", texts == ["1"])
    if columns > 1 and len(texts) % columns == 0:
        rows = [texts[at : at + columns] for at in range(0, len(texts), columns)]
        kinds = tuple(kind_of(column) for column in zip(*rows, strict=True))
        values = tuple(tuple(map(value_of, row, kinds)) for row in rows)
        return Gold("table", values, items=kinds, ordered=is_ordered)
    kind = kind_of(texts)
    if len(texts) == 1:
        return Gold(kind, value_of(texts[0], kind))
    shape = "list" if is_ordered or len({*texts}) < len(texts) else "set"
    values = tuple(value_of(text, kind) for text in texts)
    return Gold(shape, values, items=(kind,), ordered=is_ordered)


def orders(query: str) -> bool:
    """Return whether a query orders its rows: whether its last ORDER BY stands outside brackets.

    sqlglot cannot read some, such as `current_time - 1 day`.
    """
    plain = re.sub(r"'[^']*'|\"[^\"]*\"", "''", query.lower())
    _, found, after = " ".join(plain.split()).rpartition(" order by")
    return bool(found) and after.count("(") == after.count(")")


def tables_in(query: str) -> set[str]:
    """Return the names of the tables that a query reads, in small letters."""
    tree = _tree(query)
    return {table.name.lower() for table in tree.find_all(exp.Table)} if tree else set()


def _tree(query: str) -> Any:
    """Return what sqlglot reads of a query, or None."""
    try:
        return sqlglot.parse_one(query, read="sqlite", error_level=ErrorLevel.IGNORE)
    except (SqlglotError, RecursionError):
        return None


def kind_of(texts: Sequence[str]) -> str:
    """Return the common kind of the texts that are there. Numbers like 041 are text (codes)."""
    there = [text for text in texts if text != "None"]
    if all(NUMBER.fullmatch(text) and not re.match(r"[+-]?0\d", text) for text in there):
        return "number"
    return "date" if all(DATE.fullmatch(text) for text in there) else "text"


def value_of(text: str, kind: str) -> Any:
    if text == "None":
        return None
    if kind != "number":
        return text
    return int(text) if WHOLE.fullmatch(text) else float(text)  # a float has no 17 digits
