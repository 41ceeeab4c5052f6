"""What a training row asks, with its names and values taken out: the mould of synthetic conversations.

`⟦n0⟧` is the first name in the question (of an entity, or what is searched for), `⟦v0⟧` the first value of the answer,
`⟦list⟧` the names found, `⟦count⟧` how many there are. Used by `sql_agent/demonstrations.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sql_agent.prompts import COLUMNS, NAME_COLUMNS

FROM_TABLE = re.compile(r"\bFROM\s+(\w+)", re.IGNORECASE)
SEARCH = re.compile(
    r"^SELECT (?P<what>.+) FROM (?P<table>\w+) WHERE (?P<column>\w+) (?:LIKE '%(?P<part>.+)%'|= '(?P<whole>.+)')$"
)
COUNT = "COUNT(*) AS count"
SEARCHES = ("listing", "count")  # the kinds that look for a word instead of an entity


@dataclass(frozen=True)
class Pattern:
    """A training row with its names and values taken out.

    kind: "fields" (values of named entities), "absent" (no such entity), "blank" (the entity's cell is empty),
    "listing" (names of what a search finds), "count" (how many it finds). columns: those the answer gives; for the last
    two kinds the one that is searched. ending: how the word searched for ends, "" for the other kinds.
    """

    question: str
    sql: str
    answer: str
    table: str
    columns: tuple[str, ...]
    names: int
    kind: str
    ending: str = ""


def gold_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row's structured gold answer, {"columns": [...], "rows": [[...]]}; empty lists when it has none."""
    return json.loads(row.get("structured_gt") or "{}") or {"columns": [], "rows": []}


def names_of(row: dict[str, Any]) -> list[str]:
    """Return the names the row is about."""
    return json.loads(row.get("entities") or "[]")


def pattern_of(row: dict[str, Any]) -> Pattern | None:
    """Take names and values out of a training row; None for what the moulds cannot hold (a misspelt name, no SQL)."""
    if len(row.get("sql") or []) != 1 or not names_of(row):
        return None
    return _search(row, row["sql"][0]) or _look_up(row, row["sql"][0])


def _look_up(row: dict[str, Any], sql: str) -> Pattern | None:
    names, gold, table = names_of(row), gold_of(row), FROM_TABLE.search(sql)
    if not table or table[1] not in NAME_COLUMNS:
        return None
    columns = tuple(column for column in gold["columns"] if column != NAME_COLUMNS[table[1]])
    if not all(name in row["question"] and name in sql for name in names) or not set(columns) <= {*COLUMNS[table[1]]}:
        return None
    values = _values_by_name(names, gold, NAME_COLUMNS[table[1]])
    flat = [value for per_name in values for value in per_name]
    kind = "absent" if not values else "fields" if any(flat) else "blank"
    if kind == "fields" and not (
        len(values) == len(names) and columns and all(v and str(v) in row["answer"] for v in flat)
    ):
        return None
    filled = list(enumerate(flat)) if kind == "fields" else []
    swaps = [(name, f"⟦n{i}⟧") for i, name in enumerate(names)] + [(str(value), f"⟦v{i}⟧") for i, value in filled]
    question, query, answer = (swap(text, swaps) for text in (row["question"], sql, row["answer"]))
    return Pattern(question, query, answer, table[1], columns, len(names), kind)


def _search(row: dict[str, Any], sql: str) -> Pattern | None:
    """The pattern of a row that lists or counts what a search finds."""
    found, gold = SEARCH.match(sql), gold_of(row)
    if (
        not found
        or found["table"] not in NAME_COLUMNS
        or found["column"] == NAME_COLUMNS[found["table"]]
        or not gold["rows"]
    ):
        return None
    key = found["part"] or found["whole"]
    if key not in row["question"]:
        return None
    if found["what"] == COUNT:
        answer, kind = row["answer"].replace(str(gold["rows"][0][0]), "⟦count⟧"), "count"
    elif found["what"] == NAME_COLUMNS[found["table"]]:
        answer, kind = row["answer"].replace("、".join(line[0] for line in gold["rows"]), "⟦list⟧"), "listing"
    else:
        return None
    question, query, answer = (text.replace(key, "⟦n0⟧") for text in (row["question"], sql, answer))
    if not {"⟦count⟧", "⟦list⟧"} & set(re.findall("⟦[a-z]+⟧", answer)):
        return None
    return Pattern(question, query, answer, found["table"], (found["column"],), 1, kind, key[-2:])


def _values_by_name(names: list[str], gold: dict[str, Any], name_column: str) -> list[list[Any]]:
    """Return the gold values of each name, in the order of `names`; rows without a name column keep their order."""
    if name_column in gold["columns"]:
        at = gold["columns"].index(name_column)
        rows = {row[at]: row[:at] + row[at + 1 :] for row in gold["rows"]}
        return [rows[name] for name in names if name in rows]
    return [list(row) for row in gold["rows"]]


def swap(text: str, swaps: Iterable[tuple[str, str]]) -> str:
    """Replace every first by its second, longest first."""
    for old, new in sorted(swaps, key=lambda pair: -len(pair[0])):
        text = text.replace(old, new) if old else text
    return text
