"""Turn a question file of another form into the Parquet that training reads.

    .venv/bin/python -m data.convert my.jsonl --out my.parquet
    .venv/bin/python -m data.convert my.jsonl --out my.parquet --draft-answers --db sqlite:///my.db

Other names and nested values become text columns, and HTML is removed. `--draft-answers` writes
missing answers from gold SQL or evidence.
`.venv/bin/python -m data.validate` checks rows against the database. Exit codes: 0 done, 1 failed, 2 wrong
usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from common.command import new_parser, run_command
from common.files import refuse_existing
from common.settings import load_settings
from sql_agent.gold.draft import fill_answers
from sql_agent.gold.markup import without_markup
from sql_agent.intake.question_files import (
    COLUMNS,
    count_without_reference,
    load_rows,
    write_rows,
)
from sql_agent.settings import SqlSettings
from sql_agent.tables import TABLES


def convert(
    source: Path,
    target: Path,
    database_url: str | None = None,
    tables: Iterable[str] = tuple(TABLES),
) -> str:
    """Write the rows of `source` to `target`, completely or not at all, and draft missing answers.

    Return the numbers of rows written, answers drafted and still missing, and the columns left out.
    Raises DataError: a row is unusable. Raises DatabaseError: drafting needs the database, and it
    cannot be read.
    """
    rows = [without_markup(row) for row in load_rows(source)]
    unknown = set().union(*rows) - set(COLUMNS)
    drafted = fill_answers(rows, database_url, tables) if database_url else 0
    write_rows(rows, target)
    bare = f"{count_without_reference(rows)} without an answer (judged without a reference)"
    notes = [f"{len(rows)} rows", f"{drafted} answers drafted", bare]
    if unknown:
        notes.append(f"columns left out: {', '.join(sorted(unknown))}")
    return ", ".join(notes)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="Parquet, JSONL or a JSON list")
    add("--out", type=Path, required=True, metavar="X.parquet", help="file to write")
    what = "write missing answers from gold SQL or evidence"
    add("--draft-answers", action="store_true", help=what)
    what = "database for drafting (default: DATABASE_URL, else the embedded one)"
    add("--db", metavar="URL", help=what)
    add("--tables", metavar="A,B", help="tables that SQL may read (default: DATABASE_TABLES)")
    add("--force", action="store_true", help="replace --out if it exists")
    options = parser.parse_args(arguments)
    if options.db and not options.draft_answers:
        parser.error("--db is used by --draft-answers only")
    return options


def run(options: argparse.Namespace) -> None:
    refuse_existing(options.out, options.force)
    given = {"database_url": options.db, "database_tables": options.tables}
    settings = load_settings().of(SqlSettings).under(given)
    url = settings.database_url if options.draft_answers else None
    print(f"{options.out}: {convert(options.file, options.out, url, settings.tables)}")


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    return run_command("convert", lambda: run(options), afterwards="nothing was written")


if __name__ == "__main__":
    sys.exit(main())
