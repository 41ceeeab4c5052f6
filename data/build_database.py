"""Build the embedded database data/medical.db: common real drugs and diseases, and invented ones.

The real ones are general textbook facts in short words (data/textbook_*.tsv); the invented ones are made by rule from
one seed (data/database/fictional.py), in any number. The column `source` says which is which; keys of the invented come
first, so that adding a textbook row moves none of them. The same arguments give the same rows, and the same bytes with
the same SQLite version.

    python -m data.build_database            # writes data/medical.db, refuses if it exists
    python -m data.build_database --force    # replaces it
    python -m data.build_database --output big.db --fictional-drugs 200000 --fictional-diseases 20000
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from data.database.fictional import DISEASES, DRUGS, SEED, fictional_rows
from data.database.schema import Cells, write_database
from data.database.textbook import textbook_rows

HERE = Path(__file__).resolve().parent
DEFAULT_PATH = HERE / "medical.db"


def all_rows(seed: int, drugs: int, diseases: int) -> dict[str, Iterable[Cells]]:
    """Both tables' rows by table name, made while they are read: `drugs` and `diseases` invented ones, then the real.

    Raises:
        ValueError: more invented rows than the vocabulary has names for.
    """
    fictional = fictional_rows(seed, drugs, diseases)
    first_key = {"drugs_info": drugs + 1, "disease": diseases + 1}
    return {table: chain(rows, textbook_rows(table, first_key[table])) for table, rows in fictional.items()}


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Build the embedded database of real and invented drugs and diseases.")
    parser.add_argument("--output", type=Path, default=DEFAULT_PATH, help="file to write (default: data/medical.db)")
    parser.add_argument("--seed", type=int, default=SEED, help=f"same seed, same invented rows (default: {SEED})")
    parser.add_argument("--fictional-drugs", type=_count, default=DRUGS, metavar="N", help=f"default: {DRUGS}")
    parser.add_argument("--fictional-diseases", type=_count, default=DISEASES, metavar="N", help=f"default: {DISEASES}")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    options = parser.parse_args(arguments)
    if options.output.exists() and not options.force:
        print(f"{options.output} exists; give --force to replace it, or --output for another file", file=sys.stderr)
        return 2
    try:
        rows = all_rows(options.seed, options.fictional_drugs, options.fictional_diseases)
        counts = write_database(options.output, rows)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"cannot write {options.output}: {error}", file=sys.stderr)
        return 1
    print(f"{options.output}: " + ", ".join(f"{number} rows in {name}" for name, number in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
