"""The typed answer of a query whose rows are flattened into a list of texts.

gold_of_query("select count(*)>0 from lab", ["1"])                           # Gold("boolean", True)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from code_agent.graders import Gold

WHOLE = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2})?)?")
# `select count(*)>0 from ...` and `select ( ... ) < ( ... )`: a question answered with yes or no.
YES_NO = re.compile(
    r"\s*select\s+(count\s*\(\s*\*\s*\)\s*>\s*0|\(.*\)\s*[<>=]+\s*\()", re.IGNORECASE | re.DOTALL
)
ORDERED = re.compile(r"\border\s+by\b", re.IGNORECASE)


def gold_of_query(query: str, answer: Sequence[Any]) -> Gold:
    """Return the typed answer. An empty list becomes an empty set, which `[]` answers."""
    texts = [str(value) for value in answer]
    if not texts:
        return Gold("set", (), items=("text",))
    if texts in (["0"], ["1"]) and YES_NO.match(query):
        return Gold("boolean", texts == ["1"])
    columns = columns_of(query)
    if columns > 1 and len(texts) % columns == 0:
        rows = [texts[at : at + columns] for at in range(0, len(texts), columns)]
        kinds = tuple(kind_of(column) for column in zip(*rows, strict=True))
        values = tuple(tuple(map(value_of, row, kinds)) for row in rows)
        return Gold("table", values, items=kinds, ordered=_ordered(query))
    kind = kind_of(texts)
    if len(texts) == 1:
        return Gold(kind, value_of(texts[0], kind))
    shape = "list" if _ordered(query) or len({*texts}) < len(texts) else "set"
    return Gold(shape, tuple(value_of(text, kind) for text in texts), items=(kind,))


def kind_of(texts: Sequence[str]) -> str:
    """Return the common kind of the texts. Numbers with leading zeros are text (codes)."""
    if all(NUMBER.fullmatch(text) and not re.match(r"[+-]?0\d", text) for text in texts):
        return "number"
    return "date" if all(DATE.fullmatch(text) for text in texts) else "text"


def value_of(text: str, kind: str) -> Any:
    if kind != "number":
        return text
    return int(text) if WHOLE.fullmatch(text) else float(text)  # a float has no 17 digits


def columns_of(query: str) -> int:
    """Return the number of selected columns: the top-level commas before the first `from`."""
    depth = 0
    columns = 1
    for word in re.findall(
        r"'(?:[^']|'')*'|\w+|\S", re.sub(r"^\s*select\s+", "", query, flags=re.IGNORECASE)
    ):
        if depth == 0 and word.lower() == "from":
            break
        depth += (word == "(") - (word == ")")
        columns += depth == 0 and word == ","
    return columns


def _ordered(query: str) -> bool:
    outside = []
    depth = 0
    for letter in query:
        depth += (letter == "(") - (letter == ")")
        outside.append(letter if depth == 0 else " ")
    return bool(ORDERED.search("".join(outside)))
