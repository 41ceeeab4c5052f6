"""Rows of a file as its reader gives them, and what all readers share: the encoding of a text, and
one line about a file that cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from common.command import UsageError

# Characters; a parser holds the events of a whole piece, which are many times its size
PIECE = 64 * 1024
MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


class Record(NamedTuple):
    """One row: its number, and its values by column or the problem that kept it from being read."""

    number: int
    values: dict[str, Any]
    problem: str | None = None


class SourceError(UsageError):
    """A source cannot be read. The message names the file or URL and what was expected."""


@contextmanager
def refusing(what: str, kind: type[UsageError] = SourceError) -> Iterator[None]:
    """Turn whatever a reader raises into an error of one line: the libraries raise nearly anything
    for a damaged file.
    """
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        raise kind(f"{what}: {first_line(error)}") from None


def first_line(error: Exception) -> str:
    """Return the first line of an exception's text; for a database's exception, the
    driver's text.
    """
    return (str(getattr(error, "orig", None) or error).splitlines() or [type(error).__name__])[0]


def detect_encoding(path: Path) -> str:
    """Return UTF-8 (with or without mark), UTF-16 with mark, or GB18030; the whole file is decoded
    to be sure.

    Raises:
        SourceError: none of them fits.
    """
    with path.open("rb") as file:
        start = file.read(4)
    problems = []
    for encoding in [name for mark, name in MARKS.items() if start.startswith(mark)] or [
        "utf-8",
        "gb18030",
    ]:
        try:
            with path.open(encoding=encoding, newline="") as text:
                while text.read(PIECE):
                    pass
            return encoding
        except UnicodeError as error:
            problems.append(f"{encoding}: {error}")
    raise SourceError(
        f"{path} is text in none of the encodings tried ({'; '.join(problems)}); give --encoding"
    )


def as_record(number: int, value: Any) -> Record:
    """Return a JSON value as a row; it must be an object."""
    if isinstance(value, dict):
        return Record(number, value)
    return Record(number, {}, f"a JSON {type(value).__name__}, expected an object")


def compact(value: Any) -> str:
    """Return JSON text without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
