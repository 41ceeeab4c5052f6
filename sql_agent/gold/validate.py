"""Check question files against a database and report every problem by row and field.

    python -m data.validate my.jsonl                      # DATABASE_URL, else the embedded database
    python -m data.validate train.parquet val.parquet test.parquet --db sqlite:///my.db --json
    python -m data.validate my.jsonl --rebuild-from-evidence my.db

A row is invalid if it has a problem; else not checkable if some check could not be made, because
the database lacks the rows it needs or the row brings nothing to check with; else valid.
`entity_overlap` counts entities in more than one split; a row without a split belongs to its
file's. With --rebuild-from-evidence the checks run on a small database made of the quotes
themselves. Exit codes: 0 no row is invalid, 1 some are or a file can not be written, 2 wrong usage,
130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.command import new_parser, positive, run_command
from sql_agent.settings import SqlSettings

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_PROBLEMS = 20
SHOWN_REASONS = 5


def show(report: dict[str, Any], reasons: Counter[str], console: Console) -> None:
    """Print the report: a table by task type, the first problems, and what could not be checked."""
    from rich.markup import escape
    from rich.table import Table

    console.print(escape(f"compared with {report['database']}"))
    table = Table(
        "task type", title=f"{report['rows']} rows, entity overlap {report['entity_overlap']}"
    )
    for heading in ("rows", "valid", "not checkable", "invalid", "without answer"):
        table.add_column(heading, justify="right")
    for name, counts in report["by_task_type"].items():
        table.add_row(escape(name), *(str(count) for count in counts.values()))
    console.print(table)
    for problem in report["problems"][:SHOWN_PROBLEMS]:
        file, key = (f"{problem[name]} " if problem.get(name) else "" for name in ("file", "id"))
        console.print(
            escape(f"{file}row {problem['row']} {key}{problem['field']}: {problem['message']}")
        )
    if (more := len(report["problems"]) - SHOWN_PROBLEMS) > 0:
        fields = Counter(problem["field"] for problem in report["problems"]).most_common()
        console.print(
            f"... and {more} more problems; in all: "
            + ", ".join(f"{name} {n}" for name, n in fields)
        )
    for reason, count in reasons.most_common(SHOWN_REASONS):
        console.print(escape(f"not checkable: {reason} ({count} times)"))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__, prog="python -m data.validate")
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="Parquet, JSONL or a JSON list")
    add("--json", action="store_true", help="print nothing but the report as JSON")
    add(
        "--sample", type=positive(int), metavar="N", help="check only the first N rows of each file"
    )
    database = parser.add_mutually_exclusive_group()
    add = database.add_argument
    add(
        "--db",
        metavar="URL",
        help="database to check against (default: DATABASE_URL, else the embedded one)",
    )
    parser.add_argument(
        "--tables", metavar="A,B", help="tables that SQL may read (default: DATABASE_TABLES)"
    )
    rebuilt = "check against a database made of the quotes, kept at PATH if one is given"
    add("--rebuild-from-evidence", nargs="?", const="", metavar="PATH", help=rebuilt)
    parser.add_argument("--force", action="store_true", help="replace the file at PATH")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace) -> int:
    """Validate, print the report, and return the exit code."""
    # Imported late, so that --help need not wait for SQLAlchemy and sqlglot.
    from rich.console import Console
    from sqlalchemy import make_url

    from common.settings import load_settings
    from sql_agent.gold.rebuild import rebuild
    from sql_agent.gold.report import check_files, reasons_of, report_on

    with tempfile.TemporaryDirectory() as folder:
        given = {"database_url": options.db, "database_tables": options.tables}
        settings = load_settings().of(SqlSettings).under(given)
        url = settings.database_url
        if options.rebuild_from_evidence is not None:
            target = Path(options.rebuild_from_evidence or f"{folder}/evidence.db")
            print(rebuild(options.files, target, options.force), file=sys.stderr)
            url = f"sqlite:///{target.resolve()}"
        findings = check_files(options.files, url, options.sample, settings.tables)
    report = {"database": make_url(url).render_as_string(), **report_on(findings)}
    if options.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        show(report, reasons_of(findings), Console(soft_wrap=True))
    return 0 if report["valid"] + report["not_checkable"] == report["rows"] else 1


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    return run_command("validate", lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
