"""Rows of a Parquet, JSONL or JSON file, one in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from data.json_rows import LIST, line_records, list_records, paths_of_lists
from data.parquet import parquet_records
from data.records import Record, detect_encoding, refusing

KINDS = (".parquet", ".jsonl", ".ndjson", ".json")


def file_records(path: Path) -> Iterator[Record]:
    """Yield the rows of a file; of JSON, the objects of its list, wherever in the file that stands.

    Raises:
        SourceError: not readable, or several lists of objects in one JSON file.
    """
    kind = path.suffix.lower()
    with refusing(f"{path} cannot be read as {kind[1:]}"):
        if kind == ".parquet":
            yield from parquet_records(path)
            return
        with path.open(encoding=detect_encoding(path), newline="") as file:
            if kind != ".json":
                yield from line_records(file)
                return
            places = paths_of_lists(file) or [LIST]
            if len(places) > 1:
                raise ValueError(f"it has several lists of objects: {', '.join(places)}")
            file.seek(0)
            yield from list_records(places[0], file)
