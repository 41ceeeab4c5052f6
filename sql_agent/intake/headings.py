"""Rows that name the columns once more: on each page, in a second language, or by a number."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from data.records import Record, SourceError
from sql_agent.intake.cells import CellError, to_text
from sql_agent.intake.headers import claims, is_word
from sql_agent.tables import NAME_COLUMN

NUMBERINGS = ("甲乙丙丁戊己庚辛壬癸", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
LEAST_NUMBERED = 3  # columns
LONGEST_NUMBER = 4  # characters, such as (12)


def is_heading(record: Record, mapping: Mapping[str, str], table: str) -> bool:
    """Return whether the cells of a row are names of columns, or their numbers.

    Raises SourceError: they name other columns than the header, so another table begins here.
    """
    named = next(source for source, column in mapping.items() if column == NAME_COLUMN[table])
    first = _text(record.values.get(named))
    is_name = _names_a_column(named, first)
    if not (is_name or 0 < len(first) <= LONGEST_NUMBER):
        return False
    cells = {source: _text(value) for source, value in record.values.items()}
    filled = {source: cell for source, cell in cells.items() if cell}
    if _are_numbers(list(filled.values())):
        return True
    names = [source for source, cell in filled.items() if _names_a_column(source, cell)]
    if not is_name or 2 * len(names) <= len(filled) or (len(filled) == 1 and first != named):
        return False
    for source in names:
        meant = claims(filled[source], table) if filled[source] != source else {}
        if meant and source in mapping and mapping[source] not in meant:
            raise SourceError(
                f"row {record.number}: {filled[source]!r} stands below {source!r}, so a table with "
                "other columns begins there; give each table a sheet or file of its own"
            )
    return True


def _text(value: Any) -> str:
    try:
        return to_text(value) or ""
    except CellError:
        return ""


def _names_a_column(source: str, cell: str) -> bool:
    return bool(cell) and (cell == source or is_word(cell))


def _are_numbers(cells: list[str]) -> bool:
    """Return whether cells are such as 1, 2, 3 or (1), (2), (3) or ①, ②, ③ or 甲, 乙, 丙."""
    if len(cells) < LEAST_NUMBERED or any(len(cell) > LONGEST_NUMBER for cell in cells):
        return False
    plain = [unicodedata.normalize("NFKC", cell).strip("()[]【】 ").upper() for cell in cells]
    numbers = [str(number) for number in range(1, len(cells) + 1)]
    return plain == numbers or "".join(plain) in {text[: len(cells)] for text in NUMBERINGS}
