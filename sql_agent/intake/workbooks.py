"""Reads sheets of a workbook row by row, by python-calamine.

Of .xlsx files, number formats, superscripts and formulas without a value are read from the XML.
"""

import posixpath
import re
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from zipfile import ZipFile

from python_calamine import CalamineSheet, CalamineWorkbook, SheetVisibleEnum

from sql_agent.intake.cells import CellError, Title
from sql_agent.intake.grid import SheetRows, is_blank
from sql_agent.intake.headers import is_known

WITH_MARKUP = (".xlsx", ".xlsm")
WITHOUT_FORMATS = (".xls", ".xlsb", ".ods")
KINDS = (*WITH_MARKUP, *WITHOUT_FORMATS)
# A number format that can be repeated in words: texts around one number
WORDS = r'(?:"[^"]*"|\\.|[ ¥￥$€]|[^\x00-\x7f])*'
FORMAT = re.compile(
    rf"(?P<before>{WORDS})(?P<digits>[#,0]*0|#+|General)(?:\.[0#?]+)?(?P<percent>%?)(?P<after>{WORDS})"
)
# A text, which stays, and what leaves no word: a colour, a language, and the width of a sign
NO_WORDS = re.compile(r'("[^"]*"|\\.)|_.|\*.|\[(?:\$-|[^$<>=hms])[^\]]*\]')
HAS_WORDS = re.compile(r'"[^"]*[^\W\d_][^"]*"|[\u4e00-\u9fff]')
BUILT_IN = {"9": "0%", "10": "0.00%"}  # the formats of percent, which no file writes out
NO_VALUE = (
    "a formula whose value is not stored; open the workbook in a spreadsheet program and save it"
)

POWER = re.compile("[-−–+]?[0-9]")  # the superscript of 10⁹, which is not 109

Place = tuple[int, int]  # row and column, from 0
Format = re.Match[str]


class Text(str):
    """What a cell shows that calamine reads as another text."""


Mark = Format | CellError | str


def read_workbook(path: Path) -> tuple[dict[str, SheetRows], set[str]]:
    """Return the rows of each sheet by name, and which sheets are hidden. Raises calamine's errors."""
    with closing(CalamineWorkbook.from_path(path)) as book:
        sheets = book.sheets_metadata
        hidden = {sheet.name for sheet in sheets if sheet.visible != SheetVisibleEnum.Visible}
        return {name: partial(_rows, path, name) for name in book.sheet_names}, hidden


def _rows(path: Path, name: str) -> Iterator[list[Any]]:
    with closing(CalamineWorkbook.from_path(path)) as book:
        sheet = book.get_sheet_by_name(name)
        if sheet.start is None:
            return
        firsts, wide = _merged(sheet)
        shown: dict[Place, Any] = {}  # the first cells of merged ones; names of columns stay there
        left = sheet.start[1]
        marked = _marked_rows(path, name) if path.suffix.lower() in WITH_MARKUP else iter(())
        every_row = zip(sheet.iter_rows(), chain(marked, repeat({})), strict=False)
        # calamine begins with the first row and the first filled column
        for row, (values, marks) in enumerate(every_row):
            cells = list(values)
            for place, value in enumerate(values):
                column = left + place
                if column in marks:
                    cells[place] = _shown(value, marks[column])
                first = firsts.get((row, column))
                if first and first != (row, column):
                    cells[place] = shown.get(first, value)
                elif first and not is_known(value):
                    shown[first] = cells[place]
            filled = [cell for cell in cells if not is_blank([cell])]
            if row in wide and len(filled) == 1 and not isinstance(filled[0], float | int):
                cells[cells.index(filled[0])] = Title(filled[0])
            yield cells


def _merged(sheet: CalamineSheet) -> tuple[dict[Place, Place], set[int]]:
    """Return the first of each cell merged downwards, and the rows with cells merged side by side."""
    firsts = {}
    wide = set()
    for (first, column), (last, last_column) in sheet.merged_cell_ranges or []:
        if last_column > column:
            wide.add(first)
        for row in range(first, last + 1):
            firsts[row, column] = (first, column)
    return firsts, wide


def _shown(value: Any, mark: Mark) -> Any:
    """Return a number as its format shows it, without rounding, a text, or the cell's fault."""
    if isinstance(mark, CellError | Text):
        return mark
    if not isinstance(value, float | int):
        return value
    if isinstance(mark, str):
        return CellError(f"its number format {mark} cannot be repeated in words; store it as text")
    number = Decimal(f"{value:.15g}") * (100 if mark["percent"] else 1)
    whole, _, rest = format(abs(number), "f").partition(".")
    rest = rest.rstrip("0")
    digits = whole.zfill(mark["digits"].count("0")) + (f".{rest}" if rest else "")
    sign = "-" if number < 0 else ""
    return f"{_plain(mark['before'])}{sign}{digits}{mark['percent']}{_plain(mark['after'])}"


def _plain(words: str) -> str:
    return re.sub(r'["\\]', "", words).strip()


def _marked_rows(path: Path, name: str) -> Iterator[dict[int, Mark]]:
    """Yield each row's marks by column from 0. Those of all would need more memory than the values."""
    with ZipFile(path) as package:
        formats = _formats(package)
        raised = _raised_texts(package)
        with package.open(_file_of(package, name)) as file:
            count = 0
            for _, element in ElementTree.iterparse(file):
                if not element.tag.endswith("}row"):
                    continue
                number = int(element.get("r", count + 1))
                if number > count:  # else the rows are in disorder
                    yield from repeat({}, number - count - 1)  # blank rows are not written
                    yield _marks(element, formats, raised)
                    count = number
                element.clear()


def _raised_texts(package: ZipFile) -> dict[str, Text]:
    """Return the shared texts with superscripts behind digits by their number, as 10^9."""
    if "xl/sharedStrings.xml" not in package.namelist():
        return {}
    found: dict[str, Text] = {}
    count = 0
    with package.open("xl/sharedStrings.xml") as file:
        for _, element in ElementTree.iterparse(file):
            if element.tag.endswith("}si"):
                if text := _raised(element):
                    found[str(count)] = text
                count += 1
                element.clear()
    return found


def _raised(element: ElementTree.Element) -> Text | None:
    if len(element) < 2:  # so are nearly all, of one run
        return None
    text = ""
    is_raised = False
    for run in element.iterfind("{*}r"):
        words = run.findtext("{*}t", "")
        place = run.find("{*}rPr/{*}vertAlign")
        is_above = place is not None and place.get("val") == "superscript"
        if is_above and text[-1:].isdecimal() and POWER.match(words):
            text += "^"
            is_raised = True
        text += words
    return Text(text) if is_raised else None


def _marks(
    row: ElementTree.Element, formats: list[Format | str], raised: dict[str, Text]
) -> dict[int, Mark]:
    marks: dict[int, Mark] = {}
    column = -1
    for cell in row:  # the text is looked for only where it counts: this runs for every cell
        reference = cell.get("r")
        column = _column(reference) if reference else column + 1
        kind = cell.get("t", "n")
        style = int(cell.get("s", 0))
        mark: Mark | None = None
        if kind == "e":
            mark = CellError(f"the formula failed with {cell.findtext('{*}v', '')}")
        elif kind == "n" and cell.findtext("{*}v", "").strip():
            mark = formats[style] if style < len(formats) else ""
        elif kind == "n" and cell.find("{*}f") is not None:
            mark = CellError(NO_VALUE)
        elif kind == "s" and raised:
            mark = raised.get(cell.findtext("{*}v", ""))
        elif kind == "inlineStr" and (text := cell.find("{*}is")) is not None:
            mark = _raised(text)
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


def _formats(package: ZipFile) -> list[Format | str]:
    """Return, by style, how numbers are shown: "" as they are, or a code with other words."""
    if "xl/styles.xml" not in package.namelist():
        return []
    styles = ElementTree.fromstring(package.read("xl/styles.xml"))
    codes = dict(BUILT_IN)
    for one in styles.iterfind(".//{*}numFmt"):
        codes[one.get("numFmtId", "")] = one.get("formatCode", "")
    used = [one.get("numFmtId", "") for one in styles.iterfind("{*}cellXfs/{*}xf")]
    formats: list[Format | str] = []
    for code in (codes.get(number, "General") for number in used):
        first = code.partition(";")[0].replace("G/通用格式", "General")  # as WPS calls it
        formats.append(read_format(first) or (code if HAS_WORDS.search(first) else ""))
    return formats


def read_format(code: str) -> Format | None:
    """Return how a number format (`0"个月"`) shows a number. None: as it is."""
    found = FORMAT.fullmatch(NO_WORDS.sub(r"\1", code.partition(";")[0]))
    if not found:
        return None
    changes = found["percent"] or _plain(found["before"]) or _plain(found["after"])
    return found if changes or found["digits"].count("0") > 1 else None
