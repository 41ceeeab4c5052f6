"""Check whole question files, and sum up what was found: counts, repeated ids and questions, shared entities.

findings = check_files([Path("train.parquet")], "sqlite:///data/medical.db")
report = report_on(findings)
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from data.load import DataError, read_records
from data.questions.gold_check import Checker, Finding
from data.questions.row import nested
from scoring.reference.text import words_only

STATES = ("valid", "not_checkable", "invalid")


class Placed(NamedTuple):
    """What was found about a row of a file; `file` is "" when there is only one."""

    file: str
    number: int
    finding: Finding

    def value(self, column: str) -> str:
        """The text of a column, "" where it is wrong."""
        wrong = any(name == column for name, _ in self.finding.problems)
        return "" if wrong else self.finding.row.get(column, "")

    @property
    def split(self) -> str:
        """The row's split; a row without one belongs to the split of its file."""
        return self.value("split") or f"\n{self.file}"

    @property
    def state(self) -> str:
        return "invalid" if self.finding.problems else "not_checkable" if self.finding.unchecked else "valid"

    def __str__(self) -> str:
        return f"row {self.number} of {self.file}" if self.file else f"row {self.number}"

    def problem(self, name: str, message: str) -> dict[str, Any]:
        place = {"file": self.file} if self.file else {}
        return place | {"row": self.number, "id": self.value("id"), "field": name, "message": message}

    def entities(self) -> set[str]:
        """The entities by name; without names, the rows the evidence cites."""
        if {"row", "entities", "evidence"} & {name for name, _ in self.finding.problems}:
            return set()
        names = {words_only(name) for name in nested(self.finding.row, "entities")} - {""}
        return names or {f"{item.get('table')}\n{item.get('row_id')}" for item in nested(self.finding.row, "evidence")}


def check_files(files: list[Path], database_url: str, sample: int | None = None) -> list[Placed]:
    """Check every row, or the first `sample` of each file.

    Raises:
        DataError: a file cannot be read.
        DatabaseError: the database cannot be opened or read.
    """
    checker, placed = Checker(database_url), []
    for path in files:
        found = checker.check(record for _, record in islice(read_records(path), sample))
        if not found:
            raise DataError(f"{path} has no rows")
        label = str(path) if len(files) > 1 else ""
        placed += [Placed(label, number, finding) for number, finding in enumerate(found)]
    _find_repetitions(placed)
    return placed


def _find_repetitions(rows: list[Placed]) -> None:
    """An id used twice, and a question asked in two splits, become problems of the later row."""
    ids: dict[str, Placed] = {}
    questions: dict[str, Placed] = {}
    for row in rows:
        key, question = row.value("id"), words_only(row.value("question"))
        earlier, asked = ids.get(key), questions.get(question)
        ids[key], questions[question] = row, row
        if key and earlier:
            row.finding.problems.append(("id", f"is already the id of {earlier}"))
        if question and asked and asked.split != row.split:
            row.finding.problems.append(("question", f"{asked}, of another split, asks the same"))


def report_on(rows: list[Placed]) -> dict[str, Any]:
    """The report: rows, valid, not_checkable, entity_overlap, problems and by_task_type.

    `problems` are {row, id, field, message}, with `file` when there are several files.
    """
    states = Counter(row.state for row in rows)
    splits: dict[str, set[str]] = {}
    for row in rows:
        for entity in row.entities():
            splits.setdefault(entity, set()).add(row.split)
    return {
        "rows": len(rows),
        "valid": states["valid"],
        "not_checkable": states["not_checkable"],
        "entity_overlap": sum(len(found) > 1 for found in splits.values()),
        "problems": [row.problem(*note) for row in rows for note in row.finding.problems],
        "by_task_type": _by_task_type(rows),
    }


def _by_task_type(rows: list[Placed]) -> dict[str, dict[str, int]]:
    kinds: dict[str, list[Placed]] = {}
    for row in rows:
        kinds.setdefault(row.value("task_type") or "unknown", []).append(row)
    report = {}
    for name, mine in sorted(kinds.items()):
        states = Counter(row.state for row in mine)
        bare = sum(not row.finding.row.get("answer") for row in mine)
        report[name] = {"rows": len(mine), **{state: states[state] for state in STATES}, "without_answer": bare}
    return report


def reasons_of(rows: list[Placed]) -> Counter[str]:
    """Why checks could not be made, and how often, without what differs from row to row."""
    return Counter(f"{name}: {_kind(message)}" for row in rows for name, message in row.finding.unchecked)


def _kind(message: str) -> str:
    if ":" in message:
        return message.split(":")[0]
    return " ".join("…" if word.isdigit() else word for word in message.split())
