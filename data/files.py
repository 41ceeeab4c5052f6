"""Rows of a Parquet, JSONL or JSON file, one in memory at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import ijson

from data.json_rows import (
    are_lines,
    line_records,
    list_records,
    object_records,
    paths_of_lists,
    why_no_json,
)
from data.parquet import parquet_records
from data.records import PIECE, Record, SourceError, detect_encoding, refusing

LINES = (".jsonl", ".ndjson")
KINDS = (".parquet", ".json", *LINES)


def file_records(path: Path) -> Iterator[Record]:
    """Yield the rows of a file. In JSON they are the objects of its list, at any depth, or of an
    object that holds nothing else.

    Raises SourceError: not readable, or several lists of objects in one JSON file.
    """
    kind = path.suffix.lower()
    with refusing(f"{path} cannot be read as {kind[1:]}"):
        if kind == ".parquet":
            yield from parquet_records(path)
            return
        encoding = detect_encoding(path)
        places = json_places(path, encoding)
        # Lists may stand in the objects of an object, as the turns of dialogues by their id
        keys = {place.partition(".")[0] for place in places or ()}
        are_keyed = len(keys) > 1 and all(place.count(".") > 1 for place in places or ())
        with open_text(path, encoding) as file:
            if places is None:
                yield from line_records(file)
            elif not places or are_keyed:
                yield from object_records(file)
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
    with open_text(path, encoding) as file:
        if are_lines(file):
            return None
    with open_text(path, encoding) as file:
        if path.suffix.lower() in LINES and not file.read(PIECE).lstrip().startswith("["):
            return None
    with open_text(path, encoding) as file:
        try:
            return paths_of_lists(file)
        except ijson.JSONError:
            file.seek(0)
            raise ValueError(why_no_json(file)) from None
