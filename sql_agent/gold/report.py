"""The report of `data.validate` on question files.

report_on(check_files([Path("train.parquet")], "sqlite:///data/medical.db"))    # {"rows": 960, "valid": 960, ...}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from scoring.text import words_only
from sql_agent.gold.checker import STATES, Checker, Finding
from sql_agent.intake.question_files import DataError, in_several, read_records
from tools.sql.query import DEFAULT_TABLES


def check_files(
    files: list[Path],
    database_url: str,
    sample: int | None = None,
    tables: Iterable[str] = DEFAULT_TABLES,
) -> list[Finding]:
    """Check every row, or the first `sample` of each file.

    Raises:
        DataError: a file cannot be read.
        DatabaseError: the database cannot be opened or read.
    """
    checker = Checker(database_url, tables)
    findings = []
    for path in files:
        found = checker.check(record for _, record in islice(read_records(path), sample))
        if not found:
            raise DataError(f"{path} has no rows")
        for number, finding in enumerate(found):
            finding.number = number
            finding.file = str(path) if len(files) > 1 else ""
        findings += found
    _find_repetitions(findings)
    return findings


def _find_repetitions(findings: list[Finding]) -> None:
    """Add problems to the later row of an id used twice, or of a question asked in two splits."""
    ids: dict[str, Finding] = {}
    questions: dict[str, Finding] = {}
    for finding in findings:
        key = finding.value("id")
        question = words_only(finding.value("question"))
        earlier = ids.get(key)
        asked = questions.get(question)
        ids[key] = finding
        questions[question] = finding
        if key and earlier:
            finding.problems.append(("id", f"is already the id of {earlier}"))
        if question and asked and asked.split != finding.split:
            finding.problems.append(("question", f"{asked}, of another split, asks the same"))


def report_on(findings: list[Finding]) -> dict[str, Any]:
    """Return the report: rows, valid, not_checkable, entity_overlap, problems and by_task_type.

    `problems` are {row, id, field, message}, with `file` when there are several files.
    """
    counts = _counts(findings)
    by_type: dict[str, list[Finding]] = {}
    for one in findings:
        by_type.setdefault(one.value("task_type") or "unknown", []).append(one)
    return {
        **{name: counts[name] for name in ("rows", "valid", "not_checkable")},
        "entity_overlap": len(
            in_several((entity, one.split) for one in findings for entity in one.entities())
        ),
        "problems": [
            ({"file": one.file} if one.file else {})
            | {"row": one.number, "id": one.value("id"), "field": name, "message": message}
            for one in findings
            for name, message in one.problems
        ],
        "by_task_type": {name: _counts(found) for name, found in sorted(by_type.items())},
    }


def _counts(findings: list[Finding]) -> dict[str, int]:
    states = Counter(finding.state for finding in findings)
    without = sum(not finding.row.get("answer") for finding in findings)
    return {
        "rows": len(findings),
        **{name: states[name] for name in STATES},
        "without_answer": without,
    }


def reasons_of(findings: list[Finding]) -> Counter[str]:
    """Return why checks could not be made, and how often; reasons that differ only in the row count
    as one.
    """
    notes = (
        f"{name}: {message.split(':')[0]}"
        for finding in findings
        for name, message in finding.unchecked
    )
    return Counter(
        " ".join("…" if word.isdigit() else word for word in note.split()) for note in notes
    )
