"""Conversations for the cold start of a tiny model: question, query, its result and an answer, as the agent has them.

A demonstration is made from a row of the training split that looks up fields of named entities: names and values are
swapped for random ones, stored in a scratch database and queried with the project's own tool, so that the model has to
copy what it reads instead of remembering it. `Flaws` then spoils a share of them, the way logs of real users are
spoiled: those failures are decisions that reinforcement learning can turn around. Used by `training/cold_start.py`;
needs no torch.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sql_agent.patterns import SEARCHES, Pattern, gold_of, names_of, pattern_of, swap
from sql_agent.prompts import COLUMNS, NAME_COLUMNS, TOOL_NAME, first_messages
from tools.sql.query import QueryTool

# Texts are cut after Chinese and ASCII commas, stops and semicolons.
PIECES = re.compile(r"[^,\uff0c\u3002;\uff1b\u3001]+[,\uff0c\u3002;\uff1b\u3001]?")
VALUE_SLOT = re.compile(r"⟦(v\d+|list|count)⟧")
# What an answer without a query says. Always the same: invented values would be noise that drowns the decision.
EVASION = "请遵医嘱"
RANDOM_NAME_SHARE = 0.4
ENDING_SHARE = 0.8
RECOVERY_SHARE = 0.05
# Answers of several values are where copying fails last, so phase A shows them more often than the training split has.
LONG_ANSWER_WEIGHT = 2


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
    """A synthetic case before it is executed.

    `names` are what the question names; `rows` go into the scratch database.
    """

    pattern_id: int
    flaw: str
    names: list[str]
    rows: list[dict[str, str | None]] = field(default_factory=list)


def taken_names(database_url: str) -> set[str]:
    """Return the name of every drug and disease in the database."""
    from sqlalchemy import create_engine, text

    engine = create_engine(database_url)
    with engine.connect() as connection:
        found = [connection.execute(text(f"SELECT {c} FROM {t}")).scalars().all() for t, c in NAME_COLUMNS.items()]
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
        counted = Counter(p for row in rows if (p := pattern_of(row)))
        self.patterns = sorted(counted, key=repr)
        self.weights = [counted[pattern] for pattern in self.patterns]
        self.copying_weights = [
            weight * (LONG_ANSWER_WEIGHT if max(pattern.names, len(pattern.columns)) > 1 else 1)
            for weight, pattern in zip(self.weights, self.patterns, strict=True)
        ]
        names = sorted({name for row in rows for name in names_of(row)})
        self.syllables = sorted({name[i : i + 2] for name in names for i in range(len(name) - 1)})
        self.endings = self._endings(rows)
        self.pieces = self._value_pieces(rows)

    def _endings(self, rows: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
        """How the names of each table end, as often as they do."""
        endings: dict[str, list[str]] = {table: [] for table in NAME_COLUMNS}
        for row in rows:
            pattern = pattern_of(row)
            if pattern and pattern.kind not in SEARCHES:
                endings[pattern.table] += [name[-2:] for name in names_of(row)]
        return endings

    def _value_pieces(self, rows: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
        pieces: dict[str, set[str]] = {}
        for row in rows:
            gold = gold_of(row)
            for column, value in (
                (c, v) for values in gold["rows"] for c, v in zip(gold["columns"], values, strict=True)
            ):
                if column not in NAME_COLUMNS.values() and isinstance(value, str):
                    # An indication may name a disease of the database.
                    new = [piece for piece in PIECES.findall(value) if not any(name in piece for name in self.taken)]
                    pieces.setdefault(column, set()).update(new)
        return {column: sorted(found) for column, found in pieces.items()}

    def name(self, endings: Sequence[str]) -> str:
        """Return a new name: random characters or shuffled syllables, mostly with one of `endings`."""
        while True:
            if self.rng.random() < RANDOM_NAME_SHARE:
                name = "".join(self.rng.choices(self.characters, k=self.rng.randint(2, 5)))
            else:
                name = "".join(self.rng.choices(self.syllables, k=self.rng.randint(1, 2)))
            name += self.rng.choice(endings) if self.rng.random() < ENDING_SHARE else ""
            if name not in self.taken and len(name) > 1:
                self.taken.add(name)
                return name

    def value(self, column: str) -> str:
        """Return a text for the column: pieces of real ones in a new order, some characters and digits replaced."""
        pieces = self.rng.sample(self.pieces[column], k=min(len(self.pieces[column]), self.rng.randint(1, 3)))
        text = "".join(pieces)
        if self.rng.random() < 0.5:
            at = self.rng.randrange(len(text))
            text = text[:at] + "".join(self.rng.choices(self.characters, k=self.rng.randint(1, 4))) + text[at + 2 :]
        text = re.sub(r"\d", lambda _: str(self.rng.randint(0, 9)), text)
        return text.replace("'", "")

    def pick(self, count: int, copying: bool = False) -> list[int]:
        """Draw patterns as often as the training split has rows of them; `copying`: long answers more often."""
        weights = self.copying_weights if copying else self.weights
        return self.rng.choices(range(len(self.patterns)), weights, k=count)

    def plan(self, pattern_id: int, flaw: str) -> Plan:
        """Draw names, and the rows the question's query will find or miss."""
        pattern = self.patterns[pattern_id]
        name_column, endings = NAME_COLUMNS[pattern.table], self.endings[pattern.table]
        if pattern.kind in SEARCHES:
            key = self.name([pattern.ending])
            found = [{name_column: self.name(endings), pattern.columns[0]: key} for _ in range(self._hits())]
            return Plan(pattern_id, flaw, [key], [dict(row) for row in found])
        names = [self.name(endings) for _ in range(pattern.names)]
        if pattern.kind == "absent":
            return Plan(pattern_id, flaw, names)
        rows: list[dict[str, str | None]] = [{name_column: name, **self._cells(pattern.table)} for name in names]
        if pattern.kind == "blank":
            rows = [row | dict.fromkeys(pattern.columns) for row in rows]
        return Plan(pattern_id, flaw, names, rows)

    def _hits(self) -> int:
        return self.rng.choices((1, 2, 3, 4), (4, 3, 2, 1))[0]

    def _cells(self, table: str) -> dict[str, str]:
        """A value for every column that questions of the table ask about."""
        return {column: self.value(column) for column in COLUMNS[table] if column in self.pieces}


def as_returned(plan: Plan) -> Plan:
    """The plan of two entities in the order a query returns them, which the answer follows: by name, from the index.

    An answer in the question's order would have to jump back and forth in the result; the judge accepts both orders.
    """
    if len(plan.rows) != len(plan.names) or len(plan.names) < 2:
        return plan
    pairs = sorted(zip(plan.names, plan.rows, strict=True), key=lambda pair: pair[0])
    return replace(plan, names=[name for name, _ in pairs], rows=[row for _, row in pairs])


def write_scratch_database(path: Path, plans: Sequence[Plan], patterns: Sequence[Pattern]) -> None:
    """Store the synthetic rows of all plans in a new SQLite file with the real tables' columns."""
    connection = sqlite3.connect(path)
    for table, columns in COLUMNS.items():
        kinds = ["id INTEGER PRIMARY KEY", *(f"{column} TEXT" for column in columns[1:])]
        connection.execute(f"CREATE TABLE {table} ({', '.join(kinds)})")
        connection.execute(f"CREATE INDEX {table}_name ON {table} ({NAME_COLUMNS[table]})")
    for plan in plans:
        table = patterns[plan.pattern_id].table
        for row in plan.rows:
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
        answer = self._fill(pattern.answer, as_returned(plan))
        turns: list[dict[str, Any]] = []
        learn = [True, True]
        if plan.flaw == "no_call":
            answer, learn = VALUE_SLOT.sub(EVASION, self._fill(pattern.answer, replace(plan, rows=[]))), [True]
        elif plan.flaw == "wrong_column" and pattern.kind == "fields":
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
        """Put names and values into a pattern's text; without rows the values' slots stay."""
        pattern = self.maker.patterns[plan.pattern_id]
        swaps = [(f"⟦n{i}⟧", name) for i, name in enumerate(plan.names)]
        if pattern.kind == "fields":
            values = [row[column] for row in plan.rows for column in pattern.columns]
            swaps += [(f"⟦v{i}⟧", str(value)) for i, value in enumerate(values)]
        elif plan.rows:
            found = [str(row[NAME_COLUMNS[pattern.table]]) for row in plan.rows]
            swaps += [("⟦list⟧", "、".join(found)), ("⟦count⟧", str(len(found)))]
        return swap(text, swaps)

    def _wrong_column(self, plan: Plan, pattern: Pattern, sql: str) -> tuple[list[dict[str, Any]], str]:
        others = [column for column in self.maker.pieces if column in plan.rows[0] and column not in pattern.columns]
        wrong = {column: self.rng.choice(others) for column in pattern.columns}
        for column, other in wrong.items():
            sql = re.sub(rf"\b{column}\b", other, sql)
        rows = [{**row, **{column: row[other] for column, other in wrong.items()}} for row in plan.rows]
        answer = self._fill(pattern.answer, as_returned(replace(plan, rows=rows)))
        return query_turn(self.tool, sql), answer

    def _misspelt(self, sql: str) -> str:
        """The query with a column that does not exist; one that names no entity gets a table that does not."""
        wrong = sql.replace("med_name", "name").replace("disease_name", "name")
        return wrong if wrong != sql else sql.replace("drugs_info", "drugs").replace("FROM disease ", "FROM diseases ")
