"""Write the invented hospital: a CSV of each table, and all of them in one SQLite file.

    .venv/bin/python -m data.ehr.build --out data/ehr/tables --force
    .venv/bin/python -m data.ehr.build --out my_hospital --patients 10000 --seed 1

Times and dates are written as 2104-05-17 08:30:00, as in MIMIC-III's files. The same arguments give
the same CSV bytes, and the same SQLite bytes with the same SQLite version.
"""

import argparse
import csv
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from common.command import UsageError, positive, run_command
from common.files import replacing
from recipes.drawing import drawing_parser
from recipes.hospital.hospital import (
    COLUMNS,
    DATABASE,
    MOST,
    PATIENTS,
    Row,
    column_names,
    draw_hospital,
)


def write_hospital(tables: Mapping[str, Sequence[Row]], folder: Path) -> None:
    """Write the files into a folder that appears completely or not at all."""
    with replacing(folder) as draft:
        draft.mkdir()
        for table, rows in tables.items():
            with (draft / f"{table}.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(column_names(table))
                writer.writerows(rows)
        with closing(sqlite3.connect(draft / DATABASE)) as database:
            for table, rows in tables.items():
                write_table(database, table, rows)
            database.commit()
            database.execute("VACUUM")


def write_table(database: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    database.execute(f"CREATE TABLE {table} ({COLUMNS[table]})")
    marks = ", ".join("?" * len(rows[0]))
    database.executemany(
        f"INSERT INTO {table} VALUES ({marks})", (list(map(_stored, row)) for row in rows)
    )


def _stored(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, int | float) else str(cell)


def build(options: argparse.Namespace) -> None:
    if options.out.exists() and not options.force:
        raise UsageError(f"{options.out} exists; give another folder, or --force to replace it")
    if options.patients > MOST:
        raise UsageError(
            f"--patients {options.patients}: the numbers of stays last for {MOST}; give fewer"
        )
    tables = draw_hospital(options.seed, options.patients)
    write_hospital(tables, options.out)
    print(f"{options.out}: " + ", ".join(f"{len(rows)} {table}" for table, rows in tables.items()))


def main(arguments: list[str] | None = None) -> int:
    parser = drawing_parser("data.ehr.build", __doc__)
    parser.add_argument(
        "--patients", type=positive(int), default=PATIENTS, help=f"default: {PATIENTS}"
    )
    options = parser.parse_args(arguments)
    return run_command("build", lambda: build(options), afterwards="nothing was written")


if __name__ == "__main__":
    sys.exit(main())
