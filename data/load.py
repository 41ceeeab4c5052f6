"""Read and check a question file before anything expensive starts.

    from data.load import load_rows
    rows = load_rows("data/train.parquet")

A row needs `id` and `question`. A row whose `answer` is missing, null or blank is kept with the answer "": it is judged
without a reference, and `count_without_reference` says how many there are.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

REQUIRED = ("id", "question")
TEXTS = ("id", "question", "answer", "task_type", "difficulty", "sql", "split")
JSON_TEXTS = ("structured_gt", "evidence", "entities")

Row = dict[str, Any]


class DataError(ValueError):
    """A question file that cannot be used; the message names the file, the column and the row."""


def load_rows(path: str | PathLike[str]) -> list[Row]:
    """The rows of a Parquet file as dicts, in file order, each with a text `answer` ("" where there is none).

    Rows are counted from 0 in messages.

    Raises:
        DataError: no such file, not Parquet, no rows, a required column missing, a value of the wrong type, text that
            should be JSON and is not, a blank id or question, or an id used twice.
    """
    path = Path(path)
    rows = _read(path)
    if not rows:
        raise DataError(f"{path} has no rows")
    missing = [column for column in REQUIRED if column not in rows[0]]
    if missing:
        raise DataError(f"{path} has no column {', '.join(missing)}; it has: {', '.join(rows[0])}")
    first_seen: dict[str, int] = {}
    for number, row in enumerate(rows):
        _check_row(row, f"{path}, row {number}")
        earlier = first_seen.setdefault(row["id"], number)
        if earlier != number:
            raise DataError(f"{path}, row {number}, column id: {row['id']!r} is already the id of row {earlier}")
        answer = row.get("answer") or ""
        row["answer"] = answer if answer.strip() else ""
    return rows


def count_without_reference(rows: list[Row]) -> int:
    """How many rows have no answer to compare with."""
    return sum(1 for row in rows if not row["answer"])


def _read(path: Path) -> list[Row]:
    import pyarrow.parquet as parquet
    from pyarrow import ArrowException

    if not path.is_file():
        found = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {found}; expected a Parquet file with the columns id, question and answer")
    try:
        # ParquetFile reads this one file; read_table would add columns from folder names such as `a=b/`.
        with parquet.ParquetFile(path) as file:
            return file.read().to_pylist()
    except (ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None


def _check_row(row: Row, where: str) -> None:
    for column in TEXTS + JSON_TEXTS:
        value = row.get(column)
        if value is not None and not isinstance(value, str):
            raise DataError(f"{where}, column {column}: {value!r} is {type(value).__name__}, expected text")
    for column in REQUIRED:
        if not (row[column] or "").strip():
            raise DataError(f"{where}, column {column}: empty, expected text")
    for column in JSON_TEXTS:
        if row.get(column):
            _check_json(row[column], f"{where}, column {column}")


def _check_json(text: str, where: str) -> None:
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON ({error}): {text[:60]!r}") from None
