"""Workbooks and CSV files of rows, as tests of the import write them, and what is stored of them."""

import csv
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl


def save_book(
    path: Path,
    rows: Iterable[Sequence[Any]],
    sheet: str = "Sheet",
    merged: Iterable[str] = (),
    formats: Mapping[str, str] | None = None,
) -> openpyxl.Workbook:
    """Write rows into a workbook's one sheet, merge and format cells, and return the workbook."""
    book = openpyxl.Workbook()
    book.active.title = sheet
    for row in rows:
        book.active.append(row)
    for cells in merged:
        book.active.merge_cells(cells)
    for cell, code in (formats or {}).items():
        book.active[cell].number_format = code
    book.save(path)
    return book


def save_csv(
    path: Path, rows: Iterable[Sequence[Any]], encoding: str = "utf-8", delimiter: str = ","
) -> Path:
    """Write rows into a file and return its path."""
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


def stored(target: Path, table: str = "drugs_info") -> list[dict[str, Any]]:
    """Return the rows of a table that was imported."""
    with closing(sqlite3.connect(target)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY id")]
