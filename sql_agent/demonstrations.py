"""Conversations for the cold start of a tiny model: question, query, its result and an answer, as the agent has them.

A demonstration is made from a row of the training split that looks up fields of named entities: names and values are
swapped for random ones, stored in a scratch database and queried with the project's own tool, so that the model has to
copy what it reads instead of remembering it. `Flaws` then spoils a share of them, the way logs of real users are
spoiled: those failures are decisions that reinforcement learning can turn around. Used by `sql_agent/cold_start.py`;
needs no torch.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sql_agent.prompts import COLUMNS, TOOL_NAME, first_messages
from tools.query import QueryTool

NAME_COLUMN = {"drugs_info": "med_name", "disease": "disease_name"}
FROM_TABLE = re.compile(r"\bFROM\s+(\w+)", re.IGNORECASE)
PIECES = re.compile(r"[^,,。;;、]+[,,。;;、]?")
VALUE_SLOT = re.compile(r"⟦v\d+⟧")
# What an answer without a query says. Always the same: invented values would be noise that drowns the decision.
EVASION = "请遵医嘱"
RANDOM_NAME_SHARE = 0.4
RECOVERY_SHARE = 0.05


@dataclass(frozen=True)
class Pattern:
    """A training row with its names and values taken out: `⟦n0⟧` is the first name, `⟦v0⟧` the first value."""

    question: str
    sql: str
    answer: str
    table: str
    columns: tuple[str, ...]
    names: int
    found: bool


@dataclass
class Conversation:
    """OpenAI messages, which of the assistant's turns are to be learned (in order), and whether tools are described."""

    messages: list[dict[str, Any]]
    learn: list[bool]
    tools: bool = True

    def bare(self) -> Conversation:
        """The same without what every conversation begins with: a third of the tokens, for learning to copy."""
        return Conversation(self.messages[1:], self.learn, tools=False)


@dataclass(frozen=True)
class Flaws:
    """Shares of spoiled demonstrations: no query at all, a wrong column, an empty answer. The rest is right."""

    no_call: float = 0.0
    wrong_column: float = 0.0
    empty: float = 0.0

    @property
    def right(self) -> float:
        """Share of demonstrations that are left as they are."""
        return 1 - self.no_call - self.wrong_column - self.empty

    def draw(self, rng: random.Random) -> str:
        """Return "no_call", "wrong_column", "empty" or "right"."""
        shares = {**asdict(self), "right": self.right}
        return rng.choices(list(shares), list(shares.values()))[0]


@dataclass
class Plan:
    """A synthetic case before it is executed."""

    pattern_id: int
    flaw: str
    names: list[str]
    values: list[dict[str, str]] = field(default_factory=list)


def gold_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row's structured gold answer, {"columns": [...], "rows": [[...]]}; empty lists when it has none."""
    return json.loads(row.get("structured_gt") or "{}") or {"columns": [], "rows": []}


def pattern_of(row: dict[str, Any]) -> Pattern | None:
    """Take names and values out of a training row; None when the row is no plain look-up of named entities."""
    names: list[str] = json.loads(row.get("entities") or "[]")
    gold, sql = gold_of(row), row.get("sql") or ""
    table = FROM_TABLE.search(sql)
    if not names or not table or table[1] not in NAME_COLUMN:
        return None
    columns = tuple(column for column in gold["columns"] if column != NAME_COLUMN[table[1]])
    values = _values_by_name(names, gold, NAME_COLUMN[table[1]])
    flat = [value for per_name in values for value in per_name]
    if not all(name in row["question"] and name in sql for name in names):
        return None
    if values and (len(values) != len(names) or not columns or not all(value in row["answer"] for value in flat)):
        return None
    swaps = [(name, f"⟦n{i}⟧") for i, name in enumerate(names)] + [(value, f"⟦v{i}⟧") for i, value in enumerate(flat)]
    question, query, answer = (_swap(text, swaps) for text in (row["question"], sql, row["answer"]))
    return Pattern(question, query, answer, table[1], columns, len(names), bool(values))


def _values_by_name(names: list[str], gold: dict[str, Any], name_column: str) -> list[list[str]]:
    """Return the gold values of each name, in the order of `names`; rows without a name column keep their order."""
    if name_column in gold["columns"]:
        at = gold["columns"].index(name_column)
        rows = {row[at]: row[:at] + row[at + 1 :] for row in gold["rows"]}
        return [[str(value) for value in rows[name]] for name in names if name in rows]
    return [[str(value) for value in row] for row in gold["rows"]]


def _swap(text: str, swaps: Iterable[tuple[str, str]]) -> str:
    for old, new in sorted(swaps, key=lambda pair: -len(pair[0])):
        text = text.replace(old, new) if old else text
    return text


def taken_names(database_url: str) -> set[str]:
    """Return the name of every drug and disease in the database."""
    from sqlalchemy import create_engine, text

    engine = create_engine(database_url)
    with engine.connect() as connection:
        found = [connection.execute(text(f"SELECT {c} FROM {t}")).scalars().all() for t, c in NAME_COLUMN.items()]
    engine.dispose()
    return {name for names in found for name in names}


class Synthesiser:
    """Makes names and values that look like the training split's and are none of the database's.

    Args:
        rows: rows of the training split.
        taken: every name of the real database; none of them is ever produced.
        characters: what random names and values are made of.
    """

    def __init__(self, rows: Sequence[dict[str, Any]], taken: set[str], characters: str, rng: random.Random) -> None:
        self.rng, self.taken, self.characters = rng, taken, characters
        self.patterns = sorted({p for row in rows if (p := pattern_of(row))}, key=repr)
        names = sorted({name for row in rows for name in json.loads(row.get("entities") or "[]")})
        self.syllables = sorted({name[i : i + 2] for name in names for i in range(len(name) - 1)})
        self.endings = sorted({name[-2:] for name in names})
        self.pieces = self._value_pieces(rows)

    def _value_pieces(self, rows: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
        pieces: dict[str, set[str]] = {}
        for row in rows:
            gold = gold_of(row)
            for column, value in (
                (c, v) for values in gold["rows"] for c, v in zip(gold["columns"], values, strict=True)
            ):
                if column not in NAME_COLUMN.values() and isinstance(value, str):
                    pieces.setdefault(column, set()).update(PIECES.findall(value))
        return {column: sorted(found) for column, found in pieces.items()}

    def name(self) -> str:
        """Return a new name: random characters or shuffled syllables, often with a common ending."""
        while True:
            if self.rng.random() < RANDOM_NAME_SHARE:
                name = "".join(self.rng.choices(self.characters, k=self.rng.randint(2, 5)))
            else:
                name = "".join(self.rng.choices(self.syllables, k=self.rng.randint(1, 2)))
            name += self.rng.choice(self.endings) if self.rng.random() < 0.6 else ""
            if name not in self.taken and len(name) > 1:
                self.taken.add(name)
                return name

    def value(self, column: str) -> str:
        """Return a text for the column: pieces of real ones in a new order, some characters and digits replaced."""
        pieces = self.rng.sample(self.pieces[column], k=min(len(self.pieces[column]), self.rng.randint(1, 2)))
        text = "".join(pieces)
        if self.rng.random() < 0.5:
            at = self.rng.randrange(len(text))
            text = text[:at] + "".join(self.rng.choices(self.characters, k=self.rng.randint(1, 4))) + text[at + 2 :]
        text = re.sub(r"\d", lambda _: str(self.rng.randint(0, 9)), text)
        return text.replace("'", "")

    def plan(self, pattern_id: int, flaw: str) -> Plan:
        """Draw names, and for each a value for every column that questions of its table ask about."""
        pattern = self.patterns[pattern_id]
        columns = [column for column in COLUMNS[pattern.table] if column in self.pieces]
        names = [self.name() for _ in range(pattern.names)]
        values = [{column: self.value(column) for column in columns} for _ in names] if pattern.found else []
        return Plan(pattern_id, flaw, names, values)


def write_scratch_database(path: Path, plans: Sequence[Plan], patterns: Sequence[Pattern]) -> None:
    """Store the synthetic rows of all plans in a new SQLite file with the real tables' columns."""
    connection = sqlite3.connect(path)
    for table, columns in COLUMNS.items():
        kinds = ["id INTEGER PRIMARY KEY", *(f"{column} TEXT" for column in columns[1:])]
        connection.execute(f"CREATE TABLE {table} ({', '.join(kinds)})")
        connection.execute(f"CREATE INDEX {table}_name ON {table} ({NAME_COLUMN[table]})")
    for plan in plans:
        table = patterns[plan.pattern_id].table
        for name, values in zip(plan.names, plan.values, strict=False):
            row = {NAME_COLUMN[table]: name, **values}
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    connection.commit()
    connection.close()


def tool_call(sql: str) -> dict[str, Any]:
    """Return the assistant message that calls the tool with `sql`."""
    arguments = json.dumps({"sql": sql}, ensure_ascii=False)
    function = {"name": TOOL_NAME, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call", "type": "function", "function": function}],
    }


def query_turn(tool: QueryTool, sql: str) -> list[dict[str, Any]]:
    """Return the assistant's call and the tool's answer to it."""
    return [tool_call(sql), {"role": "tool", "tool_call_id": "call", "content": tool.run(sql).to_json()}]


class Narrator:
    """Turns plans into conversations, with every query really executed."""

    def __init__(self, maker: Synthesiser, tool: QueryTool) -> None:
        self.maker, self.tool, self.rng = maker, tool, maker.rng

    def tell(self, plan: Plan) -> Conversation:
        """Tell a synthetic case with its flaw, if it has one; a few right ones begin with a mistake that is mended."""
        pattern = self.maker.patterns[plan.pattern_id]
        question, sql = self._fill(pattern.question, plan), self._fill(pattern.sql, plan)
        answer = self._fill(pattern.answer, plan)
        turns: list[dict[str, Any]] = []
        learn = [True, True]
        if plan.flaw == "no_call":
            answer, learn = VALUE_SLOT.sub(EVASION, self._fill(pattern.answer, replace(plan, values=[]))), [True]
        elif plan.flaw == "wrong_column" and pattern.found:
            turns, answer = self._wrong_column(plan, pattern, sql)
        elif plan.flaw == "right" and self.rng.random() < RECOVERY_SHARE:
            turns, learn = (
                [*query_turn(self.tool, self._misspelt(sql)), *query_turn(self.tool, sql)],
                [False, True, True],
            )
        else:
            turns = query_turn(self.tool, sql)
        answer = "" if plan.flaw == "empty" else answer
        messages = [*first_messages(question), *turns, {"role": "assistant", "content": answer}]
        return Conversation(messages, learn)

    def _fill(self, text: str, plan: Plan) -> str:
        columns = self.maker.patterns[plan.pattern_id].columns
        values = [per_name[column] for per_name in plan.values for column in columns]
        swaps = [(f"⟦n{i}⟧", name) for i, name in enumerate(plan.names)]
        return _swap(text, swaps + [(f"⟦v{i}⟧", value) for i, value in enumerate(values)])

    def _wrong_column(self, plan: Plan, pattern: Pattern, sql: str) -> tuple[list[dict[str, Any]], str]:
        others = [column for column in plan.values[0] if column not in pattern.columns]
        wrong = {column: self.rng.choice(others) for column in pattern.columns}
        for column, other in wrong.items():
            sql = re.sub(rf"\b{column}\b", other, sql)
        values = [{**per_name, **{c: per_name[o] for c, o in wrong.items()}} for per_name in plan.values]
        answer = self._fill(pattern.answer, Plan(plan.pattern_id, plan.flaw, plan.names, values))
        return query_turn(self.tool, sql), answer

    def _misspelt(self, sql: str) -> str:
        return sql.replace("med_name", "name").replace("disease_name", "name")
