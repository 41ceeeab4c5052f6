"""Take the names and values out of a training row (its pattern), and put new ones in.

`⟦n0⟧` is the first name in the question (of an entity, or what is searched for), `⟦v0⟧` the first
value of the answer, `⟦listing⟧` the names a search returns, `⟦count⟧` how many there are.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from episodes.agent import Row
from sql_agent.intake.question_files import nested, statements
from sql_agent.prompts import COLUMNS
from sql_agent.tables import NAME_COLUMN

FROM_TABLE = re.compile(r"\bFROM\s+(\w+)", re.IGNORECASE)
SEARCH = re.compile(
    r"^SELECT (?P<what>.+) FROM (?P<table>\w+) WHERE (?P<column>\w+) (?:LIKE '%(?P<part>.+)%'|= '(?P<whole>.+)')$"
)
COUNT = "COUNT(*) AS count"
SEARCHES = ("listing", "count")  # the kinds that look for a word instead of an entity


@dataclass(frozen=True)
class Pattern:
    """A training row with its names and values taken out.

    kind: "fields" (values of named entities), "absent" (no such entity), "blank" (the entity's cell
    is empty), "listing" (names of what a search returns), "count" (how many). columns: those the
    answer gives, or the one that is searched. ending: how the word searched for ends.
    """

    question: str
    sql: str
    answer: str
    table: str
    columns: tuple[str, ...]
    names: int
    kind: str
    ending: str = ""


@dataclass
class SyntheticCase:
    """A synthetic case before it is played: its question's names and its rows of the scratch
    database.

    called: the other name by which the question calls its one entity, or "".
    """

    pattern: Pattern
    names: list[str]
    rows: list[Row] = field(default_factory=list)
    called: str = ""
    flaw: str = "right"

    def fill(self, text: str) -> str:
        """Put names and values into one of the pattern's texts. Without rows the slots of values
        stay.
        """
        swaps = [(f"⟦n{i}⟧", name) for i, name in enumerate(self.names)]
        if self.pattern.kind == "fields":
            values = [row[column] for row in self.rows for column in self.pattern.columns]
            swaps += [(f"⟦v{i}⟧", str(value)) for i, value in enumerate(values)]
        elif self.rows:
            listed = [str(row[NAME_COLUMN[self.pattern.table]]) for row in self.rows]
            swaps += [("⟦listing⟧", "、".join(listed)), ("⟦count⟧", str(len(listed)))]
        return swap(text, swaps)

    def answer(self) -> str:
        """Return the answer. Two entities come in the order a query returns them.

        In the question's order the model would have to jump back and forth in the result.
        """
        if not len(self.rows) == len(self.names) > 1:
            return self.fill(self.pattern.answer)
        pairs = sorted(zip(self.names, self.rows, strict=True), key=lambda pair: pair[0])
        ordered = replace(self, names=[name for name, _ in pairs], rows=[row for _, row in pairs])
        return ordered.fill(self.pattern.answer)


def gold_of(row: Row) -> dict[str, Any]:
    """Return the row's structured gold answer, {"columns": [...], "rows": [[...]]}."""
    return nested(row, "structured_gt") or {"columns": [], "rows": []}


def pattern_of(row: Row) -> Pattern | None:
    """Return a training row without its names and values, or None for a row that no pattern can
    hold (another name, no SQL).
    """
    found = statements(row)
    if len(found) != 1 or not nested(row, "entities"):
        return None
    return _search(row, found[0]) or _look_up(row, found[0])


def misnamed_in(row: Row) -> list[str]:
    """Return the name of a row's entity and what its question calls it, [] if that is its name."""
    entities = nested(row, "entities")
    return entities if len(entities) == 2 and entities[0] not in row["question"] else []


def _look_up(row: Row, sql: str) -> Pattern | None:
    names = nested(row, "entities")
    gold = gold_of(row)
    match = FROM_TABLE.search(sql)
    table = match[1] if match else ""
    if table not in NAME_COLUMN or not all(
        name in row["question"] and name in sql for name in names
    ):
        return None
    columns = tuple(column for column in gold["columns"] if column != NAME_COLUMN[table])
    values = _values_by_name(names, gold, NAME_COLUMN[table])
    flat = [value for per_name in values for value in per_name]
    kind = "absent" if not values else "fields" if any(flat) else "blank"
    answered = (
        columns
        and len(values) == len(names)
        and all(value and str(value) in row["answer"] for value in flat)
    )
    if not set(columns) <= {*COLUMNS[table]} or (kind == "fields" and not answered):
        return None
    slots = [(name, f"⟦n{i}⟧") for i, name in enumerate(names)]
    slots += [(str(value), f"⟦v{i}⟧") for i, value in enumerate(flat)] if kind == "fields" else []
    question, query, answer = (swap(text, slots) for text in (row["question"], sql, row["answer"]))
    return Pattern(question, query, answer, table, columns, len(names), kind)


def _search(row: Row, sql: str) -> Pattern | None:
    match = SEARCH.match(sql)
    results = gold_of(row)["rows"]
    if not match or not results or match["table"] not in NAME_COLUMN:
        return None
    name_column = NAME_COLUMN[match["table"]]
    key = match["part"] or match["whole"]
    listed = "、".join(str(result[0]) for result in results)
    kind = {COUNT: "count", name_column: "listing"}.get(match["what"])
    if (
        not kind
        or match["column"] == name_column
        or key not in row["question"]
        or listed not in row["answer"]
    ):
        return None
    texts = (row["question"], sql, row["answer"].replace(listed, f"⟦{kind}⟧"))
    question, query, answer = (text.replace(key, "⟦n0⟧") for text in texts)
    return Pattern(question, query, answer, match["table"], (match["column"],), 1, kind, key[-2:])


def _values_by_name(names: list[str], gold: dict[str, Any], name_column: str) -> list[list[Any]]:
    """Return the gold values of each name, in the order of `names`. Rows without a name keep
    theirs.
    """
    if name_column not in gold["columns"]:
        return [list(row) for row in gold["rows"]]
    at = gold["columns"].index(name_column)
    rows = {row[at]: row[:at] + row[at + 1 :] for row in gold["rows"]}
    return [rows[name] for name in names if name in rows]


def swap(text: str, swaps: Iterable[tuple[str, str]]) -> str:
    """Return the text with every first replaced by its second, longest first."""
    for old, new in sorted(swaps, key=lambda pair: -len(pair[0])):
        text = text.replace(old, new)
    return text
