"""Check whole question files, and sum up what was found: counts, repeated ids and questions, shared entities.

findings = check_files([Path("train.parquet")], "sqlite:///data/medical.db")
report = report_on(findings)
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

from data.load import DataError, read_records
from data.questions.gold_check import STATES, Checker, Finding
from data.questions.split import in_several
from scoring.reference.text import words_only


def check_files(files: list[Path], database_url: str, sample: int | None = None) -> list[Finding]:
    """Check every row, or the first `sample` of each file.

    Raises:
        DataError: a file cannot be read.
        DatabaseError: the database cannot be opened or read.
    """
    checker, findings = Checker(database_url), []
    for path in files:
        found = checker.check(record for _, record in islice(read_records(path), sample))
        if not found:
            raise DataError(f"{path} has no rows")
        for number, finding in enumerate(found):
            finding.number, finding.file = number, str(path) if len(files) > 1 else ""
        findings += found
    _find_repetitions(findings)
    return findings


def _find_repetitions(findings: list[Finding]) -> None:
    """An id used twice, and a question asked in two splits, become problems of the later row."""
    ids: dict[str, Finding] = {}
    questions: dict[str, Finding] = {}
    for finding in findings:
        key, question = finding.value("id"), words_only(finding.value("question"))
        earlier, asked = ids.get(key), questions.get(question)
        ids[key], questions[question] = finding, finding
        if key and earlier:
            finding.problems.append(("id", f"is already the id of {earlier}"))
        if question and asked and asked.split != finding.split:
            finding.problems.append(("question", f"{asked}, of another split, asks the same"))


def report_on(findings: list[Finding]) -> dict[str, Any]:
    """The report: rows, valid, not_checkable, entity_overlap, problems and by_task_type.

    `problems` are {row, id, field, message}, with `file` when there are several files.
    """
    states = Counter(finding.state for finding in findings)
    return {
        "rows": len(findings),
        "valid": states["valid"],
        "not_checkable": states["not_checkable"],
        "entity_overlap": len(in_several((entity, one.split) for one in findings for entity in one.entities())),
        "problems": [
            ({"file": one.file} if one.file else {})
            | {"row": one.number, "id": one.value("id"), "field": name, "message": message}
            for one in findings
            for name, message in one.problems
        ],
        "by_task_type": _by_task_type(findings),
    }


def _by_task_type(findings: list[Finding]) -> dict[str, dict[str, int]]:
    report: dict[str, dict[str, int]] = {}
    for finding in findings:
        kind = finding.value("task_type") or "unknown"
        counts = report.setdefault(kind, dict.fromkeys(("rows", *STATES, "without_answer"), 0))
        for name in ("rows", finding.state, *(() if finding.row.get("answer") else ("without_answer",))):
            counts[name] += 1
    return dict(sorted(report.items()))


def reasons_of(findings: list[Finding]) -> Counter[str]:
    """Why checks could not be made, and how often, without what differs from row to row."""
    return Counter(f"{name}: {_kind(message)}" for finding in findings for name, message in finding.unchecked)


def _kind(message: str) -> str:
    return " ".join("…" if word.isdigit() else word for word in message.split(":")[0].split())
