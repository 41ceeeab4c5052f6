"""What every reader of foreign tables returns.

from data.intake.source_types import Part, Record, SourceError
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any


class SourceError(ValueError):
    """A source that can not be read; the message names the file or URL and what was expected."""


@dataclass(frozen=True)
class Record:
    """One row: its number, its values by column, or the problem that kept it from being read as a row."""

    number: int
    values: dict[str, Any]
    problem: str | None = None


@dataclass(frozen=True)
class Part:
    """One table of a source. `records` starts from the first row each time; `progress` is (done, total or None)."""

    name: str
    columns: list[str]
    records: Callable[[], Iterator[Record]]
    progress: Callable[[], tuple[int, int | None]]
    # What tells this content from another where the source is no file.
    fingerprint: str = ""


def header_row(cells: Iterable[Any], where: str) -> list[str]:
    """The column names in a header; a blank one is named by its place.

    Raises:
        SourceError: no header, or a name used twice.
    """
    names = ["" if cell is None else str(cell).strip().strip("\ufeff") for cell in cells]
    if not any(names):
        raise SourceError(f"{where} has no header row; expected column names in row 1")
    twice = [name for name, count in Counter(filter(None, names)).items() if count > 1]
    if twice:
        raise SourceError(f"{where} has two columns named {twice[0]!r}; rename one")
    return [name or f"column {place}" for place, name in enumerate(names, start=1)]
