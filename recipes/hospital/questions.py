"""Write the questions of the set `ehr_demo`: a parquet file of each split.

    .venv/bin/python -m data.ehr.questions --out data/code --force
    .venv/bin/python -m data.ehr.questions --tables my_hospital --out my_questions --seed 1

The same arguments give the same bytes.
"""

import sqlite3
import sys
from pathlib import Path

from common.command import Failure
from common.settings import ROOT
from recipes.drawing import CODE, drawing_parser, write_drawn
from recipes.hospital.hospital import DATABASE
from recipes.hospital.hospital_questions import Row, draw_questions

TABLES = ROOT / "data" / "ehr" / "tables"


def drawn(tables: Path, seed: int) -> dict[str, list[Row]]:
    """Return the questions by split. Raises Failure: no hospital, or too little to ask about."""
    try:
        return draw_questions(tables / DATABASE, seed=seed)
    except sqlite3.Error as error:
        raise Failure(f"{tables} needs a {DATABASE} of data.ehr.build: {error}") from None
    except ValueError as error:
        raise Failure(f"{tables} is too small a hospital: {error}") from None


def main(arguments: list[str] | None = None) -> int:
    parser = drawing_parser("data.ehr.questions", __doc__)
    parser.add_argument(
        "--tables",
        type=Path,
        default=TABLES,
        metavar="DIR",
        help="folder of the hospital (default: data/ehr/tables)",
    )
    options = parser.parse_args(arguments)
    return write_drawn(options, lambda: drawn(options.tables, options.seed), CODE)


if __name__ == "__main__":
    sys.exit(main())
