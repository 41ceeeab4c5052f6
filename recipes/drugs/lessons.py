"""Make the lessons of the SQL agent's bundled tiny model: synthetic conversations.

A training row that looks up fields of named entities is a pattern. Its names and values are swapped
for random ones in a scratch database, which the agent's own tool queries, so the model has to copy
what it reads. A share has the flaws of real users' logs, which reinforcement learning can correct.
`tiny_model_card.md` explains the numbers.
"""

import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from common.terminal import watched
from episodes.agent import Lessons, Row
from episodes.episode import AgentError, Conversation
from recipes.drugs.patterns import SEARCHES, SyntheticCase, gold_of, misnamed_in, pattern_of
from sql_agent.gold_episodes import gold_episode
from sql_agent.intake.question_files import nested
from sql_agent.prompts import COLUMNS, TOOL
from sql_agent.tables import NAME_COLUMN
from sql_agent.task import SqlTask
from tools.sql.errors import DatabaseError
from tools.sql.query import Limits, QueryTool

# Texts are cut after Chinese and ASCII commas, stops and semicolons.
PIECES = re.compile(r"[^,\uff0c\u3002;\uff1b\u3001]+[,\uff0c\u3002;\uff1b\u3001]?")
VALUE_SLOT = re.compile(r"⟦(v\d+|listing|count)⟧")
HAN = re.compile("[\u4e00-\u9fff]")
# The answer without a query, always the same: invented values would be noise that drowns the
# decision.
EVASION = "请遵医嘱"
# Random names and values use this many different characters: each is one token, and seen often
# enough to be copied.
RANDOM_CHARACTERS = 1000
# All names are read, and never shown
NAME_LIMITS = Limits(deadline=30.0, max_rows=1_000_000, max_chars=1_000_000_000)
RANDOM_NAME_SHARE = 0.4
ENDING_SHARE = 0.8
RECOVERY_SHARE = 0.05
# Right demonstrations show these more often than the rows do: answers of several values, where
# copying fails last, and names that do not exist, which only the hint distinguishes from wrong
# ones.
SHOWN_MORE = 2
# Share of the questions about one field of one entity that call it by another name than its own.
MISNAMED_SHARE = 0.4
NOT_FOUND = "数据库中没有找到{}。"
# Cases that share a scratch database: about as many names as in the bundled one, so that hints are
# as near.
SCRATCH_CASES = 600
# Percent of each kind. Half of the patterns are badly demonstrated, the other half mostly well.
# Misnamed ones have their own row.
BAD = {"no_call": 24, "wrong_column": 46, "empty": 6, "right": 24}
GOOD = {"no_call": 10, "wrong_column": 26, "empty": 4, "right": 60}
MISNAMED = {"no_call": 12, "gives_up": 58, "right": 30}


def lessons(
    rows: Sequence[Row], database_url: str, right: int, flawed: int, random: Random
) -> Lessons:
    """Return so many conversations of each kind, none of which names an entity of the database.

    Raises AgentError: no row can be used for them. Raises DatabaseError: it cannot be read.
    """
    cases = Cases(rows, names_in(database_url), alphabet(rows, random), random)
    if not cases.patterns:
        raise AgentError(
            "no training row looks up a field of a named "
            "entity; make lessons from data/train.parquet"
        )
    positions = range(len(cases.patterns))
    good = cases.play(
        [cases.case(i) for i in random.choices(positions, cases.right_weights, k=right)]
    )
    spoiled = [
        cases.spoiled(cases.case(i), i) for i in random.choices(positions, cases.weights, k=flawed)
    ]
    parts = {"bad": BAD, "good": GOOD, "misnamed": MISNAMED}
    shares = {f"{part}_{flaw}": share for part, of in parts.items() for flaw, share in of.items()}
    shares["misnamed"] = round(100 * MISNAMED_SHARE)
    return Lessons(
        good, cases.play(spoiled), cases.characters, {"patterns": len(cases.patterns), **shares}
    )


def names_in(database_url: str) -> set[str]:
    tool = QueryTool(database_url, limits=NAME_LIMITS, cache=False)
    names = set()
    for table, column in NAME_COLUMN.items():
        result = tool.run(f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL")
        if not result.ok:
            raise DatabaseError(f"the names of {table} cannot be read: {result.error}")
        names |= {str(name) for (name,) in result.rows if str(name).strip()}
    return names


def alphabet(rows: Sequence[Row], random: Random) -> str:
    """Return the characters of random names and values: every Chinese one of the rows, then common
    ones.
    """
    known = sorted(set(HAN.findall("".join(row["question"] + row["answer"] for row in rows))))
    pairs = (bytes([row, column]) for row in range(0xB0, 0xD8) for column in range(0xA1, 0xFF))
    # GB 2312, level 1: 3,755 characters
    common = "".join(pair.decode("gb2312", errors="ignore") for pair in pairs)
    others = [character for character in common if character not in set(known)]
    return "".join(known + random.sample(others, max(0, RANDOM_CHARACTERS - len(known))))


def pieces_of(rows: Sequence[Row], taken: set[str]) -> dict[str, list[str]]:
    """Return the parts of the texts that answers quote, by column, without names of entities."""
    pieces: dict[str, set[str]] = {}
    for gold in map(gold_of, rows):
        for cells in gold["rows"]:
            for column, value in zip(gold["columns"], cells, strict=True):
                if column in NAME_COLUMN.values() or not isinstance(value, str):
                    continue
                parts = PIECES.findall(value)
                kept = [part for part in parts if not any(name in part for name in taken)]
                pieces.setdefault(column, set()).update(kept)
    return {column: sorted(parts) for column, parts in pieces.items()}


class Cases:
    """Draws cases that look like the training split's, of names that are not in the database.

    taken: names that are never drawn. characters: of random names and values.
    """

    def __init__(
        self, rows: Sequence[Row], taken: set[str], characters: str, random: Random
    ) -> None:
        self.random = random
        self.taken = taken
        self.characters = characters
        matched = [
            (pattern, nested(row, "entities")) for row in rows if (pattern := pattern_of(row))
        ]
        counts = Counter(pattern for pattern, _ in matched)
        self.patterns = sorted(counts, key=repr)
        self.weights = [counts[pattern] for pattern in self.patterns]
        more = [
            one.kind == "absent" or max(one.names, len(one.columns)) > 1 for one in self.patterns
        ]
        factors = [SHOWN_MORE if shown else 1 for shown in more]
        self.right_weights = [
            weight * factor for weight, factor in zip(self.weights, factors, strict=True)
        ]
        self._read_names(rows)
        # Each ending as often as names have it
        self.endings: dict[str, list[str]] = {table: [] for table in NAME_COLUMN}
        for pattern, entities in matched:
            if pattern.kind not in SEARCHES:
                self.endings[pattern.table] += [self.ending(name) or name[-2:] for name in entities]
        self.pieces = pieces_of(rows, taken)

    def _read_names(self, rows: Sequence[Row]) -> None:
        misnamed = [(named[0], named[1]) for row in rows if (named := misnamed_in(row))]
        names = {name for row in rows for name in nested(row, "entities")}
        names -= {called for _, called in misnamed}
        self.syllables = sorted({name[i : i + 2] for name in names for i in range(len(name) - 1)})
        left_out = {
            name.removeprefix(called) for name, called in misnamed if name.startswith(called)
        }
        # The longer one comes first, so that it wins if two fit
        self.left_out = sorted(left_out, key=lambda ending: (-len(ending), ending))

    def spoiled(self, case: SyntheticCase, position: int) -> SyntheticCase:
        of_pattern = BAD if position % 2 else GOOD
        shares = MISNAMED if case.called else of_pattern
        return replace(case, flaw=self.random.choices([*shares], [*shares.values()])[0])

    def ending(self, name: str) -> str:
        """Return the ending of the name that people leave out, or ""."""
        return next((ending for ending in self.left_out if name.endswith(ending)), "")

    def called(self, name: str) -> str:
        """Return another name as in training rows: without its ending, or misspelt."""
        ending = self.ending(name)
        at = self.random.randrange(len(name))
        if ending and self.random.random() < 0.5:
            return name.removesuffix(ending)
        return name[:at] + self.random.choice(self.characters) + name[at + 1 :]

    def name(self, endings: Sequence[str]) -> str:
        """Return a new name of random characters or shuffled syllables, mostly with one of
        `endings`.
        """
        while True:
            if self.random.random() < RANDOM_NAME_SHARE:
                name = "".join(self.random.choices(self.characters, k=self.random.randint(2, 5)))
            else:
                name = "".join(self.random.choices(self.syllables, k=self.random.randint(1, 2)))
            name += self.random.choice(endings) if self.random.random() < ENDING_SHARE else ""
            # Names of two characters also occur in other texts that are searched
            if name not in self.taken and len(name) > 2:
                self.taken.add(name)
                return name

    def value(self, column: str) -> str:
        """Return a text for the column: pieces of real ones in a new order, some characters
        replaced.
        """
        pieces = self.pieces[column]
        text = "".join(self.random.sample(pieces, k=min(len(pieces), self.random.randint(1, 3))))
        if self.random.random() < 0.5:
            at = self.random.randrange(len(text))
            new = "".join(self.random.choices(self.characters, k=self.random.randint(1, 4)))
            text = text[:at] + new + text[at + 2 :]
        return re.sub(r"\d", lambda _: str(self.random.randint(0, 9)), text).replace("'", "")

    def case(self, position: int) -> SyntheticCase:
        pattern = self.patterns[position]
        name_column = NAME_COLUMN[pattern.table]
        endings = self.endings[pattern.table]
        if pattern.kind in SEARCHES:
            key = self.name([pattern.ending])
            hits = self.random.choices((1, 2, 3, 4), (4, 3, 2, 1))[0]
            rows: list[Row] = [
                {name_column: self.name(endings), pattern.columns[0]: key} for _ in range(hits)
            ]
            return SyntheticCase(pattern, [key], rows)
        plain = pattern.kind == "fields" and len(pattern.columns) == pattern.names == 1
        misnamed = plain and self.random.random() < MISNAMED_SHARE
        names = [self.name(endings) for _ in range(pattern.names)]
        if pattern.kind == "absent":
            return SyntheticCase(pattern, names)
        asked = [column for column in COLUMNS[pattern.table] if column in self.pieces]
        rows = [
            {name_column: name, **{column: self.value(column) for column in asked}}
            for name in names
        ]
        if pattern.kind == "blank":
            rows = [row | dict.fromkeys(pattern.columns) for row in rows]
        return SyntheticCase(pattern, names, rows, self.called(names[0]) if misnamed else "")

    def play(self, cases: Sequence[SyntheticCase]) -> list[Conversation]:
        """Return the cases as conversations, each with its flaw. Every query is executed."""
        played = []
        with tempfile.TemporaryDirectory() as folder:
            for number, case in enumerate(watched(cases, "playing", "conversations")):
                if number % SCRATCH_CASES == 0:
                    path = Path(folder) / f"scratch{number}.db"
                    write_database(path, cases[number : number + SCRATCH_CASES])
                    tool = QueryTool(f"sqlite:///{path}")
                played.append(self._conversation(case, tool))
        return played

    def _conversation(self, case: SyntheticCase, tool: QueryTool) -> Conversation:
        """Return the conversation of a case. A few right ones begin with a mistake that is mended,
        which is shown and not learned.
        """
        asked = replace(case, names=[case.called]) if case.called else case
        statements = [asked.fill(case.pattern.sql)]
        answer = case.answer()
        failing = 0
        # This name is a typing error of a stored one, not unknown
        if case.pattern.kind == "absent" and tool.run(statements[0]).hint:
            names = [self.name(self.endings[case.pattern.table]) for _ in case.names]
            return self._conversation(replace(case, names=names), tool)
        if case.called:
            # Too different from its own name for the hint to find it
            if f"：“{case.names[0]}”" not in tool.run(statements[0]).hint:
                return self._conversation(replace(case, called=""), tool)
            # As in gold: the question has another name
            what = f"SELECT {NAME_COLUMN[case.pattern.table]}, "
            statements.append(case.fill(case.pattern.sql).replace("SELECT ", what, 1))
        if case.flaw == "no_call":
            statements = []
            answer = VALUE_SLOT.sub(EVASION, replace(asked, rows=[]).fill(case.pattern.answer))
        elif case.flaw == "gives_up" and case.called:
            statements = statements[:1]
            answer = NOT_FOUND.format(asked.answer().partition("：")[0])
        elif case.flaw == "wrong_column" and case.pattern.kind == "fields":
            statements, answer = self._of_wrong_columns(case)
        elif case.flaw == "right" and not case.called and self.random.random() < RECOVERY_SHARE:
            statements = [misspelt(statements[0]), *statements]
            failing = 1
        question = asked.fill(case.pattern.question)
        reference = "" if case.flaw == "empty" else answer
        task = SqlTask(id="", question=question, reference=reference, sql=tuple(statements))
        learn = [False] * failing + [True] * (len(statements) + 1 - failing)
        return Conversation(gold_episode(task, tool).messages, learn, (TOOL,))

    def _of_wrong_columns(self, case: SyntheticCase) -> tuple[list[str], str]:
        columns = case.pattern.columns
        others = [
            column for column in case.rows[0] if column in self.pieces and column not in columns
        ]
        swapped = dict(zip(columns, others, strict=False))
        sql = re.sub(
            rf"\b({'|'.join(swapped)})\b",
            lambda match: swapped[match[0]],
            case.fill(case.pattern.sql),
        )
        rows = [
            row | {column: row[other] for column, other in swapped.items()} for row in case.rows
        ]
        return [sql], replace(case, rows=rows).answer()


def write_database(path: Path, cases: Iterable[SyntheticCase]) -> None:
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
    """Return the query with a column that does not exist, or a table if it names no entity."""
    wrong = sql.replace("med_name", "name").replace("disease_name", "name")
    return (
        wrong
        if wrong != sql
        else sql.replace("drugs_info", "drugs").replace("FROM disease ", "FROM diseases ")
    )
