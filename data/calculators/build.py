"""Write the questions of the set `calculators`: a parquet file of each split.

    python -m data.calculators.build --out data/calculators --force

The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from common.command import new_parser, run_command
from common.files import refuse_existing
from data.calculators.drawing import draw_questions
from data.code_rows import write_rows


def build(options: argparse.Namespace) -> None:
    """Draw, write and say how many."""
    options.out.mkdir(parents=True, exist_ok=True)
    for split, rows in draw_questions(seed=options.seed).items():
        file = options.out / f"{split}.parquet"
        refuse_existing(file, options.force)
        write_rows(rows, file)
        print(f"{file}: {len(rows)} questions")


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = new_parser(__doc__, prog="python -m data.calculators.build")
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="folder for a file of each split")
    add("--seed", type=int, default=0, help="same seed, same bytes (default: 0)")
    add("--force", action="store_true", help="replace existing files")
    options = parser.parse_args(arguments)
    return run_command("build", lambda: build(options), afterwards="files not named here are as they were")


if __name__ == "__main__":
    sys.exit(main())
