"""Rows of a Parquet, JSONL or JSON file, one in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from data.json_rows import LIST, are_lines, line_records, list_records, paths_of_lists
from data.parquet import parquet_records
from data.records import Record, SourceError, detect_encoding, refusing

LINES = (".jsonl", ".ndjson")
KINDS = (".parquet", ".json", *LINES)


def file_records(path: Path) -> Iterator[Record]:
    """Yield the rows of a file. In JSON they are the objects of its list, at any depth.
    Raises SourceError: not readable, or several lists of objects in one JSON file.
    """
    kind = path.suffix.lower()
    with refusing(f"{path} cannot be read as {kind[1:]}"):
        if kind == ".parquet":
            yield from parquet_records(path)
            return
        encoding = detect_encoding(path)
        with open_text(path, encoding) as file:
            places = json_places(path, encoding)
            if places is None:
                yield from line_records(file)
            elif len(places) > 1:
                raise SourceError(
                    f"{path} has several lists of objects ({', '.join(places)}); "
                    "write each into a file of its own"
                )
            else:
                yield from list_records(places[0], file)


def open_text(path: Path, encoding: str) -> IO[str]:
    return path.open(encoding=encoding, newline="")


def json_places(path: Path, encoding: str) -> list[str] | None:
    """Return the places of the lists in a JSON file, or None if it has an object a line."""
    if path.suffix.lower() in LINES:
        return None
    with open_text(path, encoding) as file:
        if are_lines(file):
            return None
    with open_text(path, encoding) as file:
        return paths_of_lists(file) or [LIST]
