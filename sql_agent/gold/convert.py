"""Turn a question file of another form into the Parquet that training reads.

    .venv/bin/python -m data.convert my.jsonl --out my.parquet

Other names and nested values become text columns, and HTML is removed. Training takes the other
form too, and drafts missing answers from gold.
"""

import argparse
import sys
from pathlib import Path

from common.command import new_parser, run_command
from common.files import refuse_existing
from sql_agent.gold.markup import without_markup
from sql_agent.intake.question_files import COLUMNS, count_without_reference, load_rows, write_rows


def run(options: argparse.Namespace) -> None:
    """Write all rows, or nothing. Raises DataError: a row is unusable."""
    refuse_existing(options.out, options.force)
    rows = [without_markup(row) for row in load_rows(options.file)]
    write_rows(rows, options.out)
    notes = [f"{len(rows)} rows", f"{count_without_reference(rows)} without an answer"]
    unknown = set().union(*rows) - set(COLUMNS)
    if unknown:
        notes.append(f"columns left out: {', '.join(sorted(unknown))}")
    print(f"{options.out}: {', '.join(notes)}")


def main(arguments: list[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="Parquet, JSONL or a JSON list")
    add("--out", type=Path, required=True, metavar="X.parquet", help="file to write")
    add("--force", action="store_true", help="replace --out if it exists")
    options = parser.parse_args(arguments)
    return run_command("convert", lambda: run(options), afterwards="nothing was written")


if __name__ == "__main__":
    sys.exit(main())
