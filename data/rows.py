"""The rows of a question file as they stand on disk, one after another: Parquet, JSONL or a JSON list.

    from data.rows import read_records
    for number, record in read_records(Path("questions.jsonl")):
        ...

What a file is, its first character says: `{` begins JSONL, `[` a JSON list, anything else has to be Parquet. Memory
stays the same however many rows a Parquet or JSONL file has; a JSON list is read whole.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.command import UsageError

BATCH_ROWS = 500
BUFFER_BYTES = 2**18  # read ahead per column; without it a whole row group is held
SHOWN = 60  # characters of an unreadable line in a message

Record = dict[str, Any]


class DataError(UsageError):
    """A question file that cannot be used; the message names the file, the column and the row."""


def read_records(path: Path) -> Iterator[tuple[int, Record | DataError]]:
    """Each row's number, from 0, and the row as a dict; a line that is no JSON object comes as the error it is.

    Blank lines of JSONL are no rows.

    Raises:
        DataError: no such file, or nothing more can be read from it.
    """
    if not path.is_file():
        found = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {found}; expected a Parquet or JSONL file with the columns id, question and answer")
    try:
        with path.open("rb") as file:
            first = file.read(1024).removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    readers = {b"{": _lines, b"[": _list}
    yield from enumerate(readers.get(first, _parquet)(path))


def _lines(path: Path) -> Iterator[Record | DataError]:
    number = 0
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                yield _object(line, f"{path}, row {number}")
                number += 1


def _object(line: bytes, where: str) -> Record | DataError:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return DataError(f"{where}: not JSON ({error}): {line[:SHOWN].decode('utf-8', 'replace')!r}")
    return _dict(value, where)


def _dict(value: Any, where: str) -> Record | DataError:
    if isinstance(value, dict):
        return value
    return DataError(f"{where}: a JSON {type(value).__name__}, expected an object with id, question and answer")


def _list(path: Path) -> Iterator[Record | DataError]:
    try:
        values = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError, OSError) as error:
        raise DataError(f"{path} cannot be read as JSON: {error}") from None
    for number, value in enumerate(values):
        yield _dict(value, f"{path}, row {number}")


def _parquet(path: Path) -> Iterator[Record | DataError]:
    import pyarrow.parquet as parquet
    from pyarrow import ArrowException

    try:
        # ParquetFile reads this one file; read_table would add columns from folder names such as `a=b/`.
        with parquet.ParquetFile(path, buffer_size=BUFFER_BYTES) as file:
            for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
                yield from batch.to_pylist()
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None
