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

IMPOSSIBLE = "null"  # what stands in place of a statement where the database has no answer
EXPECTED = "expected EHRSQL's list of questions with `query`, or EHRSQL-2024's label.json"
COMPARED = 100  # rows of a result that EHRSQL-2024 compares
NORMAL = {
    "temperature": (35.5, 38.1),
    "sao2": (95.0, 100.0),
    "heart_rate": (60.0, 100.0),
    "respiration": (12.0, 18.0),
    "systolic_bp": (90.0, 120.0),
    "diastolic_bp": (60.0, 90.0),
    "mean_bp": (60.0, 110.0),
}
"""What `NAME_lower` and `NAME_upper` of a statement mean in both benchmarks."""


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
        for name, (low, high) in NORMAL.items():
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


@dataclass(frozen=True)
class Published:
    version: Version
    questions: list[Question]


def read_questions(path: Path) -> Published:
    """Return the questions of a file in order. Of EHRSQL-2024's two files either one is enough."""
    found = read_json(path)
    version = EHRSQL
    if isinstance(found, Mapping):
        version = EHRSQL_2024
        found = _both_files(path, found)
    if not isinstance(found, list):
        raise UsageError(f"{path} is not a file of EHRSQL; {EXPECTED}")
    questions: dict[str, Question] = {}
    for at, row in enumerate(found):
        text = row.get("question") if isinstance(row, Mapping) else None
        if not isinstance(text, str) or not text.strip():
            raise UsageError(f"{path}, row {at} has no question; {EXPECTED}")
        query = row.get("query")
        if not isinstance(query, str):
            raise UsageError(f"{path}, row {at} has {str(query)[:40]!r} as its query; {EXPECTED}")
        is_impossible = query.strip() == IMPOSSIBLE or row.get("is_impossible") is True
        name = str(row.get("id", at))
        if name in questions:
            raise UsageError(f"{path} has the id {name!r} twice; expected one question of each id")
        questions[name] = Question(name, text, None if is_impossible else query)
    if not any(question.sql for question in questions.values()):
        raise UsageError(f"{path} has no questions with a statement; {EXPECTED}")
    return Published(version, [*questions.values()])


def _both_files(path: Path, found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of data.json with their statements of label.json."""
    is_data = isinstance(found.get("data"), list)
    labels = path.with_name("label.json") if is_data else path
    asked = found if is_data else read_json(path.with_name("data.json"))
    gold = read_json(labels) if is_data else found
    rows = asked.get("data") if isinstance(asked, Mapping) else None
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise UsageError(
            f"{path.with_name('data.json')} has no questions; expected EHRSQL-2024's "
            '{"data": [{"id", "question"}]} beside label.json'
        )
    missing = [row.get("id") for row in rows if row.get("id") not in gold]
    if missing:
        raise UsageError(
            f"{labels} has no statement for {len(missing)} of {len(rows)} questions, such as "
            f"{missing[0]}; expected the label.json of the same part of the set"
        )
    return [{**row, "query": gold[row["id"]]} for row in rows]


def read_text(path: Path) -> str:
    """Return a file's text. Raises UsageError: it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no text; {EXPECTED}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def read_json(path: Path) -> Any:
    """Return a file's JSON. Raises UsageError: it cannot be read, or is not whole."""
    text = read_text(path)
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{path} is not whole JSON: {error}; {EXPECTED}") from None
