"""Reads sheets of a workbook row by row, by python-calamine.

Of .xlsx files, number formats and formulas without a value are read from the XML.
"""

import math
import posixpath
import re
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree
from zipfile import ZipFile

from python_calamine import CalamineSheet, CalamineWorkbook, SheetVisibleEnum

from sql_agent.intake.cells import CellError
from sql_agent.intake.grid import Row, Rows, is_blank
from sql_agent.intake.headers import is_known

WITH_MARKUP = (".xlsx", ".xlsm")
WITHOUT_FORMATS = (".xls", ".xlsb", ".ods")
KINDS = (*WITH_MARKUP, *WITHOUT_FORMATS)
# A number format that can be repeated in words: texts around one number
WORDS = r'(?:"[^"]*"|\\.|[ ¥￥$€]|[^\x00-\x7f])*'
FORMAT = re.compile(
    rf"(?P<before>{WORDS})(?P<digits>[#,0]*0|#+|General)(?:\.[0#?]+)?(?P<percent>%?)(?P<after>{WORDS})"
)


class Shown(NamedTuple):
    """How a number format shows a number: least digits before the point, percent, texts around it."""

    digits: int
    percent: bool
    before: str
    after: str


Mark = Shown | CellError


class Marked(NamedTuple):
    """What the XML says of a row besides its values: its number, from 0, and marks by column."""

    row: float
    cells: dict[int, Mark]


BELOW = Marked(math.inf, {})  # the last row of the XML


def read_workbook(path: Path) -> tuple[dict[str, Rows], set[str]]:
    """Return the rows of each sheet by name, and which sheets are hidden. Raises calamine's errors."""
    with closing(CalamineWorkbook.from_path(path)) as book:
        sheets = book.sheets_metadata
        hidden = {sheet.name for sheet in sheets if sheet.visible != SheetVisibleEnum.Visible}
        return {name: partial(_rows, path, name) for name in book.sheet_names}, hidden


def _rows(path: Path, name: str) -> Iterator[Row]:
    marked: Iterator[Marked] = iter(())
    if path.suffix.lower() in WITH_MARKUP:
        marked = _marked_rows(path, name)
    with closing(CalamineWorkbook.from_path(path)) as book:
        sheet = book.get_sheet_by_name(name)
        if sheet.start is None:
            return
        filled, wide = _merged(sheet)
        left = sheet.start[1]
        marks = next(marked, BELOW)
        # calamine begins with the first row and the first filled column
        for row, values in enumerate(sheet.iter_rows()):
            while marks.row < row:
                marks = next(marked, BELOW)
            of_row = marks.cells if marks.row == row else {}
            cells = list(values)
            for at, value in enumerate(values, start=left):
                if (row, at) in filled:
                    cells[at - left] = filled[row, at]
                elif at in of_row:
                    cells[at - left] = _shown(value, of_row[at])
            alone = sum(not is_blank([cell]) for cell in cells) == 1
            yield Row(row + 1, cells, alone and row in wide)


def _merged(sheet: CalamineSheet) -> tuple[dict[tuple[int, int], Any], set[int]]:
    """Return the values of cells merged from above, and the rows with cells merged side by side.

    Column names stay where they are.
    """
    filled: dict[tuple[int, int], Any] = {}
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


def _shown(value: Any, mark: Mark) -> Any:
    """Return a number as its format shows it, without rounding, or the cell's fault."""
    if isinstance(mark, CellError):
        return mark
    if not isinstance(value, float | int):
        return value
    number = Decimal(f"{value:.15g}") * (100 if mark.percent else 1)
    whole, _, rest = format(abs(number), "f").partition(".")
    rest = rest.rstrip("0")
    digits = whole.zfill(mark.digits) + (f".{rest}" if rest else "")
    sign = "-" if number < 0 else ""
    return f"{mark.before}{sign}{digits}{'%' if mark.percent else ''}{mark.after}"


def _marked_rows(path: Path, name: str) -> Iterator[Marked]:
    """Yield one row at a time: the marks of all would need more memory than the values."""
    with ZipFile(path) as package:
        formats = _formats(package)
        with package.open(_file_of(package, name)) as file:
            row = -1
            for _, element in ElementTree.iterparse(file):
                if not element.tag.endswith("}row"):
                    continue
                row = int(element.get("r", row + 2)) - 1
                yield Marked(row, _marks(element, formats))
                element.clear()


def _marks(row: ElementTree.Element, formats: list[Shown | None]) -> dict[int, Mark]:
    marks: dict[int, Mark] = {}
    column = -1
    for cell in row:
        reference = cell.get("r")
        column = _column(reference) if reference else column + 1
        kind = cell.get("t", "n")
        style = int(cell.get("s", 0))
        mark: Mark | None = None
        if kind == "e":
            mark = CellError(f"the formula failed with {cell.findtext('{*}v', '')}")
        elif kind == "n" and cell.findtext("{*}v", "").strip():
            mark = formats[style] if style < len(formats) else None
        elif kind == "n" and cell.find("{*}f") is not None:
            mark = CellError(
                "a formula whose value is not stored; open the workbook in a spreadsheet program "
                "and save it"
            )
        if mark:
            marks[column] = mark
    return marks


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
    [sheet] = [one for one in book.iterfind(".//{*}sheet") if one.get("name") == name]
    target = next(targets[value] for key, value in sheet.items() if key.endswith("}id"))
    return posixpath.normpath(posixpath.join("/xl", target)).lstrip("/")


def _formats(package: ZipFile) -> list[Shown | None]:
    """Return, by style, how numbers are shown. None: as they are."""
    if "xl/styles.xml" not in package.namelist():
        return []
    styles = ElementTree.fromstring(package.read("xl/styles.xml"))
    codes = {"9": "0%", "10": "0.00%"}  # the built-in formats of percent
    for one in styles.iterfind(".//{*}numFmt"):
        codes[one.get("numFmtId", "")] = one.get("formatCode", "")
    used = [one.get("numFmtId", "") for one in styles.iterfind("{*}cellXfs/{*}xf")]
    return [read_format(codes.get(number, "General")) for number in used]


def read_format(code: str) -> Shown | None:
    """Return how a number format (`0"个月"`) shows a number. None: as it is, or no single one."""
    found = FORMAT.fullmatch(code.partition(";")[0])
    if not found:
        return None
    before = re.sub(r'["\\]', "", found["before"]).strip()
    after = re.sub(r'["\\]', "", found["after"]).strip()
    digits = found["digits"].count("0")
    if not (found["percent"] or before or after or digits > 1):
        return None
    return Shown(digits, bool(found["percent"]), before, after)
