"""A table in cells, as CSV and Excel have it: its header, with titles, notes and blank rows above,
and its rows.

(part,) = below_headers({"drugs": rows})       # rows() yields lists of cells
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from data.records import Record
from sql_agent.intake.headers import is_known

SEARCHED = 20  # first rows in which the header is searched
UNNAMED = "column "  # begins the name of an unnamed column; its number follows


class Part(NamedTuple):
    """One table of a source; `records()` starts from the first row each time. header: the number of
    the row of names, or None.
    """

    name: str
    columns: list[str]
    records: Callable[[], Iterator[Record]]
    header: int = 1


Rows = Callable[[], Iterator[list[Any]]]


def below_headers(tables: Mapping[str, Rows], header_row: int | None = None) -> list[Part]:
    """Return the tables with a row of column names, counted from 1, given or found. Raises
    ValueError if none has one, or one repeats a name.
    """
    parts = []
    for name, rows in tables.items():
        first = list(islice(rows(), header_row or SEARCHED))
        at = header_row - 1 if header_row else _header_of(first)
        if at < len(first) and not is_blank(first[at]):
            columns = column_names(first[at])
            parts.append(Part(name, columns, partial(_records, rows, columns, at + 1), at + 1))
    if not parts:
        raise ValueError(f"it has no header row; expected column names in row {header_row or 1}")
    return parts


def _header_of(rows: list[list[Any]]) -> int:
    """Return the row with most known names, or, if none has any, the first that fills half as many
    cells as the fullest.
    """
    known = [sum(isinstance(cell, str) and is_known(cell.strip()) for cell in row) for row in rows]
    filled = [sum(not is_blank([cell]) for cell in row) for row in rows]
    if max(known, default=0):
        return known.index(max(known))
    return next((at for at, count in enumerate(filled) if count and 2 * count >= max(filled)), 0)


def column_names(header: list[Any]) -> list[str]:
    """Return the column names in a header; a blank one is named by its place.

    Raises ValueError if a name stands there twice.
    """
    names = ["" if cell is None else str(cell).strip().strip("\ufeff") for cell in header]
    twice = [name for name, count in Counter(filter(None, names)).items() if count > 1]
    if twice:
        raise ValueError(f"it has two columns named {twice[0]!r}; rename one")
    return [name or f"{UNNAMED}{place}" for place, name in enumerate(names, start=1)]


def _records(rows: Rows, columns: list[str], header: int) -> Iterator[Record]:
    for number, cells in islice(enumerate(rows(), start=1), header, None):
        if is_blank(cells):
            yield Record(number, {})
        elif len(cells) < len(columns) or not is_blank(cells[len(columns) :]):
            values = dict(zip(columns, cells, strict=False))
            yield Record(number, values, f"{len(cells)} cells, the header has {len(columns)}")
        else:
            yield Record(number, dict(zip(columns, cells, strict=False)))


def is_blank(cells: list[Any]) -> bool:
    """Return whether all of the cells are empty."""
    return all(cell is None or (isinstance(cell, str) and not cell.strip()) for cell in cells)
