"""Reads EHRSQL (`*_valid.json`) and EHRSQL-2024 (`label.json`, `data.json`), and compares results.

Sources: https://github.com/glee4810/EHRSQL (`evaluate.py`), https://github.com/glee4810/ehrsql-2024
(`scoring_program/`), CC BY 4.0.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.command import UsageError
from common.toml import table_beside
from data.records import refusing

IMPOSSIBLE = "null"  # what stands in place of a statement where the database has no answer
EXPECTED = "expected EHRSQL's list of questions with `query`, or EHRSQL-2024's label.json"
COMPARED = 100  # rows of a result that EHRSQL-2024 compares
TEXTS = table_beside(__file__, "texts.toml")


@dataclass(frozen=True)
class Version:
    """One of the two benchmarks.

    now: the current time of its questions. whole: all columns are compared, and numbers by one
    decimal, otherwise the first columns. lower: statements run in lower case, as the cells are.
    """

    name: str
    now: str
    whole: bool
    lower: bool

    def as_run(self, sql: str) -> str:
        """Return a statement as the benchmark's own post-processing runs it."""
        text = sql.lower().replace("''", "'") if self.lower else " ".join(sql.split())
        for operator in (">=", "<=", "!="):
            text = text.replace(f"{operator[0]} =", operator)
        text = text.replace("current_time", f"'{self.now}'")
        for name, (low, high) in TEXTS["normal"].items():
            text = text.replace(f"{name}_lower", str(low)).replace(f"{name}_upper", str(high))
        return text.replace("%y", "%Y").replace("%j", "%J")

    def answer(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the part of a result that is compared, without order."""
        if not self.whole:
            return sorted(str(row[0]) for row in rows)
        rounded = []
        for row in rows:
            rounded.append(
                [str(round(cell, 1) if isinstance(cell, float) else cell) for cell in row]
            )
        return sorted(rounded)[:COMPARED]


EHRSQL = Version("EHRSQL", "2105-12-31 23:59:00", whole=False, lower=True)
EHRSQL_2024 = Version("EHRSQL-2024", "2100-12-31 23:59:00", whole=True, lower=False)
VERSIONS = {version.name: version for version in (EHRSQL, EHRSQL_2024)}


@dataclass(frozen=True)
class Question:
    """A published question and its gold statement. None: the database has no answer."""

    id: str
    text: str
    sql: str | None


def read_questions(path: Path) -> tuple[Version, list[Question]]:
    """Return the benchmark of a file, and its questions in order.

    Of EHRSQL-2024's two files either one is enough.
    """
    found = _read_json(path)
    version = EHRSQL
    if isinstance(found, Mapping):
        version = EHRSQL_2024
        found = _both_files(path, found)
    if not isinstance(found, list):
        raise UsageError(f"{path} is not a file of EHRSQL; {EXPECTED}")
    questions: dict[str, Question] = {}
    for at, row in enumerate(found):
        asked = row if isinstance(row, Mapping) else {}
        text = asked.get("question")
        query = asked.get("query")
        if not isinstance(text, str) or not text.strip() or not isinstance(query, str):
            seen = f"{str(text)[:40]!r} as its question and {str(query)[:40]!r} as its query"
            raise UsageError(f"{path}, row {at} has {seen}; {EXPECTED}")
        is_impossible = query.strip() == IMPOSSIBLE or row.get("is_impossible") is True
        name = str(row.get("id", at))
        if name in questions:
            raise UsageError(f"{path} has the id {name!r} twice; expected one question of each id")
        questions[name] = Question(name, text, None if is_impossible else query)
    if not any(question.sql for question in questions.values()):
        raise UsageError(f"{path} has no questions with a statement; {EXPECTED}")
    return version, [*questions.values()]


def _both_files(path: Path, found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of data.json with their statements of label.json."""
    data = found
    gold = found
    if isinstance(found.get("data"), list):
        gold = _read_json(path.with_name("label.json"))
    else:
        data = _read_json(path.with_name("data.json"))
    with refusing(f"{path} and the file beside it are no data.json and label.json", UsageError):
        return [{**row, "query": gold.get(row["id"])} for row in data["data"]]


def _read_json(path: Path) -> Any:
    with refusing(f"{path} cannot be read, {EXPECTED}", UsageError):
        return json.loads(path.read_text(encoding="utf-8"))
