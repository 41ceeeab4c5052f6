"""Build the embedded database data/medical.db: common real drugs and diseases, and invented ones.

The real ones are general textbook facts in short words (data/textbook_*.tsv), written to
demonstrate training: they are not advice. A blank cell means that the file does not say. The
invented ones are made by rule from one seed. Their keys come first, so that a new textbook row
moves none of them. The same arguments give the same rows, and the same bytes with the same SQLite
version.

    .venv/bin/python -m data.build_database            # writes data/medical.db, refuses if it exists
    .venv/bin/python -m data.build_database --force    # replaces it
    .venv/bin/python -m data.build_database --output big.db --fictional-drugs 200000 --fictional-diseases 20000
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from sqlalchemy import create_engine

from common.command import new_parser, number, run_command
from common.files import refuse_existing, replacing
from common.settings import ROOT
from common.terminal import watched
from recipes.fictional import DISEASES, DRUGS, SEED, WRITTEN_AT, fictional_rows
from sql_agent.tables import TABLES, Cells, insert_rows, metadata

DATA = ROOT / "data"
DEFAULT_PATH = DATA / "medical.db"
TEXTBOOK_FILES = {
    "drugs_info": DATA / "textbook_drugs.tsv",
    "disease": DATA / "textbook_diseases.tsv",
}
TIMES = ("created_at", "create_at", "update_at")


def textbook_rows(table: str, first_key: int) -> Iterator[Cells]:
    """Yield the rows of one table in file order, keys counted from `first_key`. Blank cells are
    None.

    Raises ValueError: a column of the file is not one of the table's.
    """
    empty: Cells = {column: WRITTEN_AT if column in TIMES else None for column in TABLES[table]}
    with TEXTBOOK_FILES[table].open(encoding="utf-8", newline="") as file:
        for key, cells in enumerate(
            csv.DictReader(file, delimiter="\t", strict=True), start=first_key
        ):
            unknown = cells.keys() - empty.keys()
            if unknown:
                raise ValueError(f"{TEXTBOOK_FILES[table]}: not columns of {table}: {unknown}")
            filled = {column: cell for column, cell in cells.items() if cell}
            yield empty | filled | {"id": key, "source": "textbook"}


def write_database(path: Path, tables: Mapping[str, Iterable[Cells]]) -> dict[str, int]:
    """Write the tables into a new SQLite file, and return the number of rows by table.

    An older file is replaced in one step, or kept on failure.
    """
    with replacing(path) as draft:
        engine = create_engine(f"sqlite:///{draft}")
        schema = metadata()
        schema.create_all(engine)
        with engine.begin() as connection:
            counts = {
                name: insert_rows(connection, schema.tables[name], watched(rows, name))
                for name, rows in tables.items()
            }
        engine.dispose()
    return counts


def build(options: argparse.Namespace) -> None:
    refuse_existing(options.output, options.force)
    invented = {"drugs_info": options.fictional_drugs, "disease": options.fictional_diseases}
    fictional = fictional_rows(options.seed, *invented.values())
    rows = {
        table: chain(fictional[table], textbook_rows(table, count + 1))
        for table, count in invented.items()
    }
    counts = write_database(options.output, rows)
    print(
        f"{options.output}: "
        + ", ".join(f"{count} rows in {name}" for name, count in counts.items())
    )


def main(arguments: list[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    count = number(int, lambda count: count >= 0, "of rows, 0 or more")
    add(
        "--output", type=Path, default=DEFAULT_PATH, help="file to write (default: data/medical.db)"
    )
    add("--seed", type=int, default=SEED, help=f"same seed, same invented rows (default: {SEED})")
    add("--fictional-drugs", type=count, default=DRUGS, metavar="N", help=f"default: {DRUGS}")
    add(
        "--fictional-diseases",
        type=count,
        default=DISEASES,
        metavar="N",
        help=f"default: {DISEASES}",
    )
    add("--force", action="store_true", help="replace an existing file")
    options = parser.parse_args(arguments)
    return run_command("build_database", lambda: build(options), afterwards="nothing was written")


if __name__ == "__main__":
    sys.exit(main())
