"""Write the questions of the set `ehr_demo`: a parquet file of each split (data/ehr/drawing.py says how they differ).

    python -m data.ehr.questions --out data/code --force
    python -m data.ehr.questions --tables my_hospital --out my_questions --seed 1

The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from common.command import Failure, new_parser, run_command
from common.files import refuse_existing
from data.code_rows import write_rows
from data.ehr.drawing import ROWS, draw_questions
from data.ehr.hospital import DATABASE

TABLES = Path(__file__).resolve().parent / "tables"


def write(options: argparse.Namespace) -> None:
    """Draw, write and say how many."""
    options.out.mkdir(parents=True, exist_ok=True)
    files = {split: options.out / f"{split}.parquet" for split in ROWS}
    for file in files.values():
        refuse_existing(file, options.force)
    try:
        drawn = draw_questions(options.tables / DATABASE, seed=options.seed)
    except ValueError as error:
        raise Failure(f"{options.tables} is too small a hospital: {error}") from None
    for split, rows in drawn.items():
        write_rows(rows, files[split])
        print(f"{files[split]}: {len(rows)} questions")


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = new_parser(__doc__, prog="python -m data.ehr.questions")
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="folder for a file of each split")
    add("--tables", type=Path, default=TABLES, metavar="DIR", help="folder of the hospital (default: data/ehr/tables)")
    add("--seed", type=int, default=0, help="same seed, same bytes (default: 0)")
    add("--force", action="store_true", help="replace existing files")
    options = parser.parse_args(arguments)
    return run_command("questions", lambda: write(options), afterwards="files not named here are as they were")


if __name__ == "__main__":
    sys.exit(main())
