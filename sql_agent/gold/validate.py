"""Check question files against a database and report every problem by row and field.

    .venv/bin/python -m data.validate my.jsonl                      # DATABASE_URL, else the embedded database
    .venv/bin/python -m data.validate train.parquet val.parquet test.parquet --db sqlite:///my.db --json

A row is invalid with a problem, not checkable if the database lacks its rows or it brings nothing
to check, otherwise valid. A row without a split belongs to its file's. The exit code is 1 if a row
is invalid.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from common.command import new_parser, run_command
from common.settings import load_settings
from scoring.text import words_only
from sql_agent.gold.checker import Checker, Finding
from sql_agent.intake.question_files import DataError, read_records
from sql_agent.settings import SqlSettings
from tools.sql.query import DEFAULT_TABLES

SHOWN_PROBLEMS = 20


def check_files(
    files: Sequence[Path], database_url: str, tables: Iterable[str] = DEFAULT_TABLES
) -> list[Finding]:
    """Check every row. Raises DataError, DatabaseError: a file or the database cannot be read."""
    checker = Checker(database_url, tables)
    findings = []
    for path in files:
        found = checker.check(record for _, record in read_records(path))
        if not found:
            raise DataError(f"{path} has no rows")
        for number, finding in enumerate(found):
            finding.number = number
            finding.file = str(path) if len(files) > 1 else ""
        findings += found
    note_repetitions(findings)
    return findings


def note_repetitions(findings: Iterable[Finding]) -> None:
    """Report ids used twice, and questions asked in two splits, at the later row."""
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
            finding.problems.append(("id", f"is already the id of {_place(earlier)}"))
        if question and asked and _split(asked) != _split(finding):
            said = f"{_place(asked)}, of another split, asks the same"
            finding.problems.append(("question", said))


def _place(finding: Finding) -> str:
    return f"row {finding.number} of {finding.file}" if finding.file else f"row {finding.number}"


def _split(finding: Finding) -> str:
    return finding.value("split") or f"\n{finding.file}"


def report_on(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return rows, valid, not_checkable, invalid, without_answer and problems.

    `problems` are {row, id, field, message}, with `file` when there are several files.
    """
    problems: list[dict[str, Any]] = []
    for finding in findings:
        file = {"file": finding.file} if finding.file else {}
        where = {**file, "row": finding.number, "id": finding.value("id")}
        for name, message in finding.problems:
            problems.append({**where, "field": name, "message": message})
    states = Counter(finding.state for finding in findings)
    return {
        "rows": len(findings),
        **{name: states[name] for name in ("valid", "not_checkable", "invalid")},
        "without_answer": sum(not finding.row.get("answer") for finding in findings),
        "problems": problems,
    }


def show(report: dict[str, Any], findings: Sequence[Finding]) -> None:
    print(f"compared with {report['database']}")
    counts = {name: count for name, count in report.items() if isinstance(count, int)}
    print(", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items()))
    for problem in report["problems"][:SHOWN_PROBLEMS]:
        file = f"{problem['file']} " if "file" in problem else ""
        place = f"{file}row {problem['row']} {problem['id']}"
        print(f"{place} {problem['field']}: {problem['message']}")
    more = len(report["problems"]) - SHOWN_PROBLEMS
    if more > 0:
        print(f"... and {more} more problems; --json prints all")
    unchecked: dict[str, list[str]] = {}
    for finding in findings:
        for name, message in finding.unchecked:
            unchecked.setdefault(name, []).append(f"{_place(finding)}: {message}")
    for name, messages in unchecked.items():
        print(f"not checkable: {name} ({len(messages)} times), such as {messages[0]}")


def run(options: argparse.Namespace) -> int:
    given = {"database_url": options.db, "database_tables": options.tables}
    settings = load_settings().of(SqlSettings).under(given)
    findings = check_files(options.files, settings.database_url, settings.tables)
    url = make_url(settings.database_url).render_as_string()
    report = {"database": url, **report_on(findings)}
    if options.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        show(report, findings)
    return 1 if report["invalid"] else 0


def main(arguments: list[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="Parquet, JSONL or a JSON list")
    add("--json", action="store_true", help="print nothing but the report as JSON")
    url = "database to check against (default: DATABASE_URL, else the embedded one)"
    add("--db", metavar="URL", help=url)
    add("--tables", metavar="A,B", help="tables that SQL may read (default: DATABASE_TABLES)")
    options = parser.parse_args(arguments)
    return run_command("validate", lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
