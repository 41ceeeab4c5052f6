"""Cleans rows and keeps them until all are read."""

import json
import re
import unicodedata
from collections.abc import Iterator
from datetime import date, time, timedelta
from typing import NamedTuple

from data.records import Record
from sql_agent.intake.cells import CellError, readable, to_text
from sql_agent.intake.columns import Planned
from sql_agent.intake.headers import with_unit
from sql_agent.intake.left_out import is_footer, is_heading
from sql_agent.tables import NAME_COLUMN, NAME_LENGTH, SOURCE_LENGTH, Cells

LENGTHS = dict.fromkeys(NAME_COLUMN.values(), NAME_LENGTH) | {"source": SOURCE_LENGTH}
LARGEST_KEY = 2**31 - 1
INITIALS = "med_name_initial"
TIMES = ("created_at", "create_at", "update_at")
# Their cells are not amounts, whatever unit a source has behind their names
CODES = ("id", *NAME_COLUMN.values(), "med_barcode", "med_approval", "approve_code")
MAYBE_DATES = (*TIMES, "period", "status", "source")
# How a spreadsheet stores the days of 1982 to 2064, which it shows as dates
SERIAL = re.compile(r"[3-5][0-9]{4}")
FIRST_DAY = date(1899, 12, 30)
# What a spreadsheet makes of 1-2 and of 1/2, and what it writes of that into a text file
MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
DAY_AND_MONTH = re.compile(rf"\d{{1,2}}月\d{{1,2}}日|\d{{1,2}}-{MONTH}|{MONTH}-\d{{2}}")
REJECTED = "rejected"
DUPLICATE = "duplicate"
EMPTY = "empty"
FOOTER = "total, title or signature"
HEADING = "names of columns again"


class LeftOut(NamedTuple):
    """Why a row was left out."""

    kind: str
    column: str = ""  # empty: the whole row
    reason: str = ""


class Staging:
    """The rows of a table that are ready: their cells as JSON, which takes little memory, and places."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}
        self._keys: set[str] = set()

    def add(self, item: Planned, record: Record, strip_html: bool = False) -> list[LeftOut]:
        """Take a record and return [], or its faults or the earlier row that it repeats.

        Rows with different keys repeat nothing.
        """
        cells, findings = clean(record, item, strip_html)
        if findings:
            return findings
        text = json.dumps(cells, ensure_ascii=False, sort_keys=True)
        is_known = cells.get("id") in self._keys
        if is_known and item.is_counted and text not in self._places:
            del cells["id"]
            text = json.dumps(cells, ensure_ascii=False, sort_keys=True)
        if text in self._places:
            return [LeftOut(DUPLICATE, reason=f"same as {self._places[text]}")]
        if is_known and not item.is_counted:
            return [LeftOut(REJECTED, "id", f"{cells['id']} is already the id of an earlier row")]
        if "id" in cells:
            self._keys.add(cells["id"])
        self._places[text] = f"row {record.number} of {item.part.name}"
        return []

    def __len__(self) -> int:
        return len(self._places)

    @property
    def without_key(self) -> int:
        return len(self._places) - len(self._keys)

    def rows(self) -> Iterator[Cells]:
        """Yield the rows in order, with their keys as `id` if every row has one."""
        for text in self._places:
            row = json.loads(text)
            key = row.pop("id", None)
            yield row if self.without_key else row | {"id": int(key)}


def clean(
    record: Record, item: Planned, strip_html: bool = False
) -> tuple[dict[str, str], list[LeftOut]]:
    """Return a record's texts by column of the table, and its faults."""
    repeated = is_heading(record, item)
    if repeated or is_footer(record.values):
        texts = map(readable, record.values.values())
        return {}, [LeftOut(HEADING if repeated else FOOTER, reason=" ".join(filter(None, texts)))]
    if record.problem:
        return {}, [LeftOut(REJECTED, reason=record.problem)]
    cells: dict[str, str] = {}
    rejected: dict[str, LeftOut] = {}  # by column
    for source, column in item.mapping.items():
        value = record.values.get(source)
        written = value.strip() if isinstance(value, str) else ""
        try:
            text = to_text(value, strip_html)
            if column == INITIALS and written in ("NA", "NAN"):
                name = readable(record.values.get(item.named))
                text = written if len(name) == len(written) else None
            if text is None:
                continue
            is_date = isinstance(value, date | time) or DAY_AND_MONTH.fullmatch(written)
            if is_date and column not in MAYBE_DATES:
                raise CellError(
                    f"the date or time {value}, which a spreadsheet makes of such as 1-2; "
                    "store it as text"
                )
            if column not in CODES:
                text = with_unit(source, text)
            joined = f"{cells[column]}\n{text}" if column in cells else text
            cells[column] = _fitting(column, joined)
        except CellError as error:
            rejected[column] = _rejected(source, column, str(error))
    if not rejected and not cells.keys() - {"id"}:
        return {}, [LeftOut(EMPTY)]
    for source, column in item.mapping.items():
        if column in ("id", NAME_COLUMN[item.table]) and column not in cells:
            empty = _rejected(source, column, "empty, every row needs one")
            rejected.setdefault(column, empty)
    return cells, list(rejected.values())


def _rejected(source: str, column: str, reason: str) -> LeftOut:
    return LeftOut(REJECTED, source if source == column else f"{source} ({column})", reason)


def _fitting(column: str, text: str) -> str:
    if column in TIMES and SERIAL.fullmatch(text):
        return str(FIRST_DAY + timedelta(int(text)))
    if column == "id":
        text = re.sub(r"\.0+$", "", unicodedata.normalize("NFKC", text))
        whole = text.isascii() and text.isdigit() and len(text) < 11
        if not whole or not 0 < int(text) <= LARGEST_KEY:
            raise CellError(f"{text[:40]!r}, expected a whole number from 1 to {LARGEST_KEY}")
        return str(int(text))
    if len(text) > LENGTHS.get(column, len(text)):
        raise CellError(f"{len(text)} characters, at most {LENGTHS[column]} fit")
    return text
