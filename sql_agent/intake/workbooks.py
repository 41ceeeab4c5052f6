"""Reads sheets of a workbook row by row, by python-calamine.

Of .xlsx files, number formats and formulas without a value are read from the XML.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.parsers import expat
from zipfile import ZipFile

from python_calamine import CalamineSheet, CalamineWorkbook

from sql_agent.intake.cells import CellError
from sql_agent.intake.grid import Row, Rows, is_blank
from sql_agent.intake.headers import is_known

WITH_MARKUP = (".xlsx", ".xlsm")
KINDS = (*WITH_MARKUP, ".xls", ".xlsb", ".ods")
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
# A number format that can be repeated in words: texts around one number
WORDS = r'(?:"[^"]*"|\\.|[ ¥￥$€]|[^\x00-\x7f])*'
FORMAT = re.compile(
    rf"(?P<before>{WORDS})(?P<digits>[#,0]*0|#+|General)(?:\.[0#?]+)?(?P<percent>%?)(?P<after>{WORDS})"
)
Place = tuple[int, int]  # row and column, from 0


class Shown(NamedTuple):
    """How a number format shows a number: least digits before the point, percent, texts around it."""

    digits: int
    percent: bool
    before: str
    after: str


def read_workbook(path: Path) -> dict[str, Rows]:
    """Return the rows of each sheet by name. Raises calamine's errors."""
    with closing(CalamineWorkbook.from_path(path)) as book:
        return {name: partial(_rows, path, name) for name in book.sheet_names}


def _rows(path: Path, name: str) -> Iterator[Row]:
    special = _special_cells(path, name) if path.suffix.lower() in WITH_MARKUP else {}
    with closing(CalamineWorkbook.from_path(path)) as book:
        sheet = book.get_sheet_by_name(name)
        if sheet.start is None:
            return
        filled, wide = _merged(sheet)
        _, left = sheet.start
        for row, values in enumerate(
            sheet.iter_rows()
        ):  # from the top, and the first filled column
            cells = list(values)
            for at, value in enumerate(values):
                place = (row, left + at)
                if place in filled:
                    cells[at] = filled[place]
                elif place in special:
                    cells[at] = _shown(value, special[place])
            alone = sum(not is_blank([cell]) for cell in cells) == 1
            yield Row(row + 1, cells, alone and row in wide)


def _merged(sheet: CalamineSheet) -> tuple[dict[Place, Any], set[int]]:
    """Return the values of cells merged from above, and the rows with cells merged side by side.

    Column names stay where they are.
    """
    filled: dict[Place, Any] = {}
    wide = set()
    ranges = sheet.merged_cell_ranges or []
    top, left = sheet.start or (0, 0)
    rows = sheet.to_python() if ranges else []
    for (first, column), (last, last_column) in ranges:
        if last_column > column:
            wide.add(first)
        value = rows[first - top][column - left] if first - top < len(rows) else None
        if not (isinstance(value, str) and is_known(value.strip())):
            for row in range(first + 1, last + 1):
                filled[row, column] = value
    return filled, wide


def _shown(value: Any, special: Shown | CellError) -> Any:
    """Return a number as its format shows it, without rounding, or the cell's fault."""
    if isinstance(special, CellError) or not isinstance(value, float | int):
        return special if isinstance(special, CellError) else value
    number = Decimal(f"{value:.15g}") * (100 if special.percent else 1)
    whole, _, rest = format(abs(number), "f").partition(".")
    rest = rest.rstrip("0")
    digits = whole.zfill(special.digits) + (f".{rest}" if rest else "")
    sign = "-" if number < 0 else ""
    return f"{special.before}{sign}{digits}{'%' if special.percent else ''}{special.after}"


def _special_cells(path: Path, name: str) -> Mapping[Place, Shown | CellError]:
    found: dict[Place, Shown | CellError] = {}
    with ZipFile(path) as package:
        formats = _formats(package)
        with package.open(_file_of(package, name)) as file:
            _SheetReader(formats, found).read(file)
    return found


class _SheetReader:
    def __init__(self, formats: list[Shown | None], found: dict[Place, Shown | CellError]) -> None:
        self.formats = formats
        self.found = found
        self.row = -1
        self.column = -1
        self.kind = ""
        self.shown: Shown | None = None
        self.formula = False
        self.text = ""

    def read(self, file: Any) -> None:
        parser = expat.ParserCreate(namespace_separator=":")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.ParseFile(file)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        element = name.rpartition(":")[2]
        if element == "row":
            self.row = int(attributes["r"]) - 1 if "r" in attributes else self.row + 1
            self.column = -1
        elif element == "c":
            self.column = _column(attributes["r"]) if "r" in attributes else self.column + 1
            self.kind = attributes.get("t", "n")
            style = int(attributes.get("s", 0))
            self.shown = self.formats[style] if style < len(self.formats) else None
            self.formula = False
            self.text = ""
        elif element == "f":
            self.formula = True
            self.text = ""

    def _characters(self, text: str) -> None:
        self.text += text

    def _end(self, name: str) -> None:
        element = name.rpartition(":")[2]
        if element == "f":
            self.text = ""
        if element != "c":
            return
        place = (self.row, self.column)
        if self.kind == "e":
            self.found[place] = CellError(f"the formula failed with {self.text.strip()}")
        elif self.formula and not self.text.strip() and self.kind == "n":
            self.found[place] = CellError(
                "a formula whose value is not stored; open the workbook in a spreadsheet program "
                "and save it"
            )
        elif self.kind == "n" and self.shown and self.text.strip():
            self.found[place] = self.shown


def _column(reference: str) -> int:
    """Return the column of a reference such as AB12, from 0."""
    number = 0
    for letter in reference.rstrip("0123456789"):
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _file_of(package: ZipFile, name: str) -> str:
    book = ElementTree.fromstring(package.read("xl/workbook.xml"))
    relations = ElementTree.fromstring(package.read("xl/_rels/workbook.xml.rels"))
    targets = {relation.get("Id"): relation.get("Target", "") for relation in relations}
    [sheet] = [one for one in book.iter(f"{MAIN}sheet") if one.get("name") == name]
    return posixpath.normpath(posixpath.join("/xl", targets[sheet.get(RELATION)])).lstrip("/")


def _formats(package: ZipFile) -> list[Shown | None]:
    """Return, by style, how numbers are shown. None: as they are."""
    if "xl/styles.xml" not in package.namelist():
        return []
    styles = ElementTree.fromstring(package.read("xl/styles.xml"))
    codes = {"9": "0%", "10": "0.00%"}  # the built-in formats of percent
    for one in styles.iter(f"{MAIN}numFmt"):
        codes[one.get("numFmtId", "")] = one.get("formatCode", "")
    cells = styles.find(f"{MAIN}cellXfs")
    used = [] if cells is None else [one.get("numFmtId", "") for one in cells]
    return [read_format(codes.get(number, "General")) for number in used]


def read_format(code: str) -> Shown | None:
    """Return how a number format shows a number, or None: as it is, a date, or several numbers.

    read_format('0"个月"')        # 24 is 24个月
    """
    found = FORMAT.fullmatch(code.partition(";")[0])
    if not found:
        return None
    before = re.sub(r'["\\]', "", found["before"]).strip()
    after = re.sub(r'["\\]', "", found["after"]).strip()
    digits = found["digits"].count("0")
    if not (found["percent"] or before or after or digits > 1):
        return None
    return Shown(digits, bool(found["percent"]), before, after)
