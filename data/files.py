"""Rows of a Parquet, JSONL or JSON file, one in memory at a time."""

from collections.abc import Iterator
from pathlib import Path

from data.json_rows import LINES, json_tables, whole
from data.parquet import parquet_records
from data.records import Record, SourceError, detect_encoding, refusing

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
        tables = json_tables(path, encoding)
        # Lists may stand in the objects of an object, as the turns of dialogues by their id
        keys = {place.partition(".")[0] for place in tables}
        if len(keys) > 1 and all("." in place for place in tables):
            tables = {"": whole(path, encoding)}
        if len(tables) > 1:
            raise SourceError(
                f"{path} has several lists of objects ({', '.join(tables)}); write each into a "
                "file of its own"
            )
        for rows in tables.values():
            yield from rows()
