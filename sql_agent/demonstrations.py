"""Supervised data of the SQL agent: the gold episodes, and what the bundled tiny model is made from.

    gold_conversations(tasks, database_url)                        # to warm up any model
    lessons(rows, database_url, right=12_000, flawed=3_200, random=Random(2))

The tiny model's conversations are synthetic. A training row that looks up fields of named entities is a pattern; its
names and values are swapped for random ones, stored in a scratch database and queried with the agent's own tool, so the
model has to copy what it reads instead of remembering it. A share of them is spoiled the way logs of real users are:
those failures are decisions that reinforcement learning can turn around. `tiny_model_card.md` explains the numbers.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from common.terminal import watched
from data.load import NAME_COLUMN, nested
from episodes.agent import AgentError, Conversation, Lessons, Row
from sql_agent.patterns import SEARCHES, Pattern, gold_of, pattern_of, swap
from sql_agent.prompts import COLUMNS, TOOL
from sql_agent.task import SqlTask
from sql_agent.template_agent import TemplateAgent, gold_episode
from tools.sql.query import QueryTool

# Texts are cut after Chinese and ASCII commas, stops and semicolons.
PIECES = re.compile(r"[^,\uff0c\u3002;\uff1b\u3001]+[,\uff0c\u3002;\uff1b\u3001]?")
VALUE_SLOT = re.compile(r"⟦(v\d+|listing|count)⟧")
HAN = re.compile("[\u4e00-\u9fff]")
# What an answer without a query says. Always the same: invented values would be noise that drowns the decision.
EVASION = "请遵医嘱"
# Random names and values use this many different characters: each is one token, and seen often enough to be copied.
RANDOM_CHARACTERS = 1000
RANDOM_NAME_SHARE = 0.4
ENDING_SHARE = 0.8
RECOVERY_SHARE = 0.05
# Answers of several values are where copying fails last, so right demonstrations show them more often than the rows do.
LONG_ANSWER_WEIGHT = 2
# Percent of each kind. Half of the patterns are badly demonstrated, the other half mostly well.
BAD = {"no_call": 66, "wrong_column": 12, "empty": 8, "right": 14}
GOOD = {"no_call": 18, "wrong_column": 17, "empty": 6, "right": 59}


def gold_conversations(
    tasks: Sequence[SqlTask], database_url: str, tables: Iterable[str] = COLUMNS
) -> Iterable[Conversation]:
    """The episodes of a policy that runs the gold SQL and gives the gold answer, one a task that has both.

    Raises AgentError: a gold statement fails; DatabaseError: the database cannot be read.
    """
    tool = QueryTool(database_url, tables)
    for task in tasks:
        if task.sql and task.reference:
            episode = gold_episode(task, tool)
            failed = next((query.result.error for query in episode.events if not query.result.ok), None)
            if failed:
                raise AgentError(f"the gold SQL of {task.id} fails: {failed}; is DATABASE_URL the right database?")
            yield Conversation(episode.messages, [True] * episode.turns, (TOOL,))


def lessons(rows: Sequence[Row], database_url: str, right: int, flawed: int, random: Random) -> Lessons:
    """So many synthetic conversations of each kind, none of which names an entity of the database.

    Raises AgentError: no row is one to make them from; DatabaseError: the database cannot be read.
    """
    cases = Cases(rows, names_in(database_url), alphabet(rows, random), random)
    if not cases.patterns:
        raise AgentError("no training row looks up a field of a named entity; make lessons from data/train.parquet")
    positions = range(len(cases.patterns))
    good = cases.play([cases.case(i, "right") for i in random.choices(positions, cases.copying_weights, k=right)])
    spoiled = [cases.case(i, cases.flaw(i)) for i in random.choices(positions, cases.weights, k=flawed)]
    shares = {f"{half}_{flaw}": share for half, of in (("bad", BAD), ("good", GOOD)) for flaw, share in of.items()}
    return Lessons(good, cases.play(spoiled), cases.characters, {"patterns": len(cases.patterns), **shares})


def names_in(database_url: str) -> set[str]:
    """The name of every drug and disease in the database."""
    return set().union(*TemplateAgent(QueryTool(database_url)).names.values())


def alphabet(rows: Sequence[Row], random: Random) -> str:
    """The characters of random names and values: every Chinese one of the rows, and common ones up to the size."""
    known = sorted(set(HAN.findall("".join(row["question"] + row["answer"] for row in rows))))
    pairs = (bytes([row, column]) for row in range(0xB0, 0xD8) for column in range(0xA1, 0xFF))
    common = "".join(pair.decode("gb2312", errors="ignore") for pair in pairs)  # GB 2312, level 1: 3,755 characters
    others = [character for character in common if character not in set(known)]
    return "".join(known + random.sample(others, max(0, RANDOM_CHARACTERS - len(known))))


@dataclass
class Case:
    """A synthetic case before it is played: what its question names, and the rows of the scratch database."""

    pattern: Pattern
    flaw: str
    names: list[str]
    rows: list[Row] = field(default_factory=list)

    def fill(self, text: str) -> str:
        """Put names and values into one of the pattern's texts; without rows the values' slots stay."""
        swaps = [(f"⟦n{i}⟧", name) for i, name in enumerate(self.names)]
        if self.pattern.kind == "fields":
            values = [row[column] for row in self.rows for column in self.pattern.columns]
            swaps += [(f"⟦v{i}⟧", str(value)) for i, value in enumerate(values)]
        elif self.rows:
            listed = [str(row[NAME_COLUMN[self.pattern.table]]) for row in self.rows]
            swaps += [("⟦listing⟧", "、".join(listed)), ("⟦count⟧", str(len(listed)))]
        return swap(text, swaps)

    def answer(self) -> str:
        """What is said of two entities comes in the order a query returns them: by name, from the index.

        In the question's order it would have to jump back and forth in the result; the judge accepts both orders.
        """
        if not len(self.rows) == len(self.names) > 1:
            return self.fill(self.pattern.answer)
        pairs = sorted(zip(self.names, self.rows, strict=True), key=lambda pair: pair[0])
        ordered = replace(self, names=[name for name, _ in pairs], rows=[row for _, row in pairs])
        return ordered.fill(self.pattern.answer)


class Cases:
    """Draws cases whose names and values look like the training split's and are none of the database's.

    taken: every name of the real database; none of them is ever drawn, nor one twice. characters: what random names and
    values are made of.
    """

    def __init__(self, rows: Sequence[Row], taken: set[str], characters: str, random: Random) -> None:
        self.random, self.taken, self.characters = random, taken, characters
        matched = [(pattern, nested(row, "entities")) for row in rows if (pattern := pattern_of(row))]
        counts = Counter(pattern for pattern, _ in matched)
        self.patterns = sorted(counts, key=repr)
        self.weights = [counts[pattern] for pattern in self.patterns]
        long = [max(pattern.names, len(pattern.columns)) > 1 for pattern in self.patterns]
        factors = [LONG_ANSWER_WEIGHT if several else 1 for several in long]
        self.copying_weights = [weight * factor for weight, factor in zip(self.weights, factors, strict=True)]
        names = {name for row in rows for name in nested(row, "entities")}
        self.syllables = sorted({name[i : i + 2] for name in names for i in range(len(name) - 1)})
        self.endings: dict[str, list[str]] = {table: [] for table in NAME_COLUMN}  # as often as names end so
        for pattern, entities in matched:
            if pattern.kind not in SEARCHES:
                self.endings[pattern.table] += [name[-2:] for name in entities]
        pieces: dict[str, set[str]] = {}
        for gold in map(gold_of, rows):
            for column, value in (pair for cells in gold["rows"] for pair in zip(gold["columns"], cells, strict=True)):
                if column not in NAME_COLUMN.values() and isinstance(value, str):
                    # Without those that name something: an indication may name a disease.
                    parts = [part for part in PIECES.findall(value) if not any(name in part for name in taken)]
                    pieces.setdefault(column, set()).update(parts)
        self.pieces = {column: sorted(parts) for column, parts in pieces.items()}

    def flaw(self, position: int) -> str:
        """How the demonstration of a pattern is spoiled, if it is."""
        shares = BAD if position % 2 else GOOD
        return self.random.choices([*shares], [*shares.values()])[0]

    def name(self, endings: Sequence[str]) -> str:
        """A new name: random characters or shuffled syllables, mostly with one of `endings`."""
        while True:
            if self.random.random() < RANDOM_NAME_SHARE:
                name = "".join(self.random.choices(self.characters, k=self.random.randint(2, 5)))
            else:
                name = "".join(self.random.choices(self.syllables, k=self.random.randint(1, 2)))
            name += self.random.choice(endings) if self.random.random() < ENDING_SHARE else ""
            if name not in self.taken and len(name) > 1:
                self.taken.add(name)
                return name

    def value(self, column: str) -> str:
        """A text for the column: pieces of real ones in a new order, some characters and digits replaced."""
        pieces = self.pieces[column]
        text = "".join(self.random.sample(pieces, k=min(len(pieces), self.random.randint(1, 3))))
        if self.random.random() < 0.5:
            at = self.random.randrange(len(text))
            new = "".join(self.random.choices(self.characters, k=self.random.randint(1, 4)))
            text = text[:at] + new + text[at + 2 :]
        return re.sub(r"\d", lambda _: str(self.random.randint(0, 9)), text).replace("'", "")

    def case(self, position: int, flaw: str) -> Case:
        """Draw names, and the rows the question's query will return or miss."""
        pattern = self.patterns[position]
        name_column, endings = NAME_COLUMN[pattern.table], self.endings[pattern.table]
        if pattern.kind in SEARCHES:
            key, hits = self.name([pattern.ending]), self.random.choices((1, 2, 3, 4), (4, 3, 2, 1))[0]
            rows: list[Row] = [{name_column: self.name(endings), pattern.columns[0]: key} for _ in range(hits)]
            return Case(pattern, flaw, [key], rows)
        names, rows = [self.name(endings) for _ in range(pattern.names)], []
        if pattern.kind != "absent":
            asked = [column for column in COLUMNS[pattern.table] if column in self.pieces]
            rows = [{name_column: name, **{column: self.value(column) for column in asked}} for name in names]
        if pattern.kind == "blank":
            rows = [row | dict.fromkeys(pattern.columns) for row in rows]
        return Case(pattern, flaw, names, rows)

    def play(self, cases: Sequence[Case]) -> list[Conversation]:
        """The cases as conversations, each with its flaw; every query is executed."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scratch.db"
            write_database(path, cases)
            tool = QueryTool(f"sqlite:///{path}")
            return [self._conversation(case, tool) for case in watched(cases, "playing", "conversations")]

    def _conversation(self, case: Case, tool: QueryTool) -> Conversation:
        """A few right ones begin with a mistake that is mended; it is shown and not learned."""
        sql, answer = case.fill(case.pattern.sql), case.answer()
        statements, learn = [sql], [True, True]
        if case.flaw == "no_call":
            statements, learn = [], [True]
            answer = VALUE_SLOT.sub(EVASION, replace(case, rows=[]).fill(case.pattern.answer))
        elif case.flaw == "wrong_column" and case.pattern.kind == "fields":
            columns = case.pattern.columns
            others = [column for column in self.pieces if column in case.rows[0] and column not in columns]
            swapped = {column: self.random.choice(others) for column in columns}
            statements = [re.sub(rf"\b({'|'.join(swapped)})\b", lambda match: swapped[match[0]], sql)]
            rows = [row | {column: row[other] for column, other in swapped.items()} for row in case.rows]
            answer = replace(case, rows=rows).answer()
        elif case.flaw == "right" and self.random.random() < RECOVERY_SHARE:
            statements, learn = [misspelt(sql), sql], [False, True, True]
        question, reference = case.fill(case.pattern.question), "" if case.flaw == "empty" else answer
        task = SqlTask(id="", question=question, reference=reference, sql=tuple(statements))
        return Conversation(gold_episode(task, tool).messages, learn, (TOOL,))


def write_database(path: Path, cases: Iterable[Case]) -> None:
    """Store the rows of all cases in a new SQLite file with the real tables' columns."""
    connection = sqlite3.connect(path)
    for table, columns in COLUMNS.items():
        kinds = ["id INTEGER PRIMARY KEY", *(f"{column} TEXT" for column in columns[1:])]
        connection.execute(f"CREATE TABLE {table} ({', '.join(kinds)})")
        connection.execute(f"CREATE INDEX {table}_name ON {table} ({NAME_COLUMN[table]})")
    for case in cases:
        for row in case.rows:
            marks = ", ".join("?" * len(row))
            statement = f"INSERT INTO {case.pattern.table} ({', '.join(row)}) VALUES ({marks})"
            connection.execute(statement, list(row.values()))
    connection.commit()
    connection.close()


def misspelt(sql: str) -> str:
    """The query with a column that does not exist; one that names no entity gets a table that does not."""
    wrong = sql.replace("med_name", "name").replace("disease_name", "name")
    return wrong if wrong != sql else sql.replace("drugs_info", "drugs").replace("FROM disease ", "FROM diseases ")
