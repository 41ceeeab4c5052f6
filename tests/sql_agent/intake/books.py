"""Workbooks and CSV files of rows, as tests of the import write them."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import openpyxl


def save_book(path: Path, rows: Iterable[Sequence[Any]], sheet: str = "Sheet") -> openpyxl.Workbook:
    """Write rows into a workbook's one sheet, and return the workbook."""
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.title = sheet
    for row in rows:
        book.active.append(row)
    book.save(path)
    return book


def save_csv(
    path: Path, rows: Iterable[Sequence[Any]], encoding: str = "utf-8", delimiter: str = ","
) -> Path:
    """Write rows into a file and return its path."""
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path
