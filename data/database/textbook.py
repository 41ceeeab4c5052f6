"""General textbook facts about common real drugs and diseases, from the files data/textbook_*.tsv.

The texts are short, written for this project, and shown to demonstrate training: they are not advice. A blank cell
means that the file says nothing, not that there is nothing to say. Products differ by maker, so makers, approval
numbers and packs stay empty.

    from data.database.textbook import textbook_rows
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from data.database.fictional import WRITTEN_AT
from data.database.schema import TABLES, TEXTBOOK, Cells

HERE = Path(__file__).resolve().parent.parent
FILES = {"drugs_info": HERE / "textbook_drugs.tsv", "disease": HERE / "textbook_diseases.tsv"}
TIMES = ("created_at", "create_at", "update_at")


def textbook_rows(table: str, first_key: int) -> Iterator[Cells]:
    """The rows of one table in file order, keys counted from `first_key`; cells the file leaves blank are None.

    Raises:
        ValueError: a column of the file is not one of the table's.
    """
    empty: Cells = {column: WRITTEN_AT if column in TIMES else None for column in TABLES[table]}
    with FILES[table].open(encoding="utf-8", newline="") as file:
        for key, cells in enumerate(csv.DictReader(file, delimiter="\t", strict=True), start=first_key):
            unknown = cells.keys() - empty.keys()
            if unknown:
                raise ValueError(f"{FILES[table]}: not columns of {table}: {unknown}")
            filled = {column: cell for column, cell in cells.items() if cell}
            yield empty | filled | {"id": key, "source": TEXTBOOK}
