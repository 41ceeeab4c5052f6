"""A workbook gives what a person sees in it, or names the cell."""

import re
import tracemalloc
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont

from sql_agent.intake.cells import CellError, Title, to_text
from sql_agent.intake.sources import open_parts
from sql_agent.intake.workbooks import read_format, read_workbook
from tests.sql_agent.intake.books import save_book

HEADER = ["药品名称", "条形码", "规格", "有效期"]


def changed(path: Path, part: str, old: str, new: str) -> None:
    """Replace a pattern in one part of a workbook, as another program would have written it.

    openpyxl writes an empty element as `<v></v>` where lxml is installed, else as `<v />`.
    """
    with ZipFile(path) as package:
        parts = {name: package.read(name).decode() for name in package.namelist()}
    parts[part], replaced = re.subn(old, new, parts[part])
    assert replaced
    with ZipFile(path, "w") as package:
        for name, text in parts.items():
            package.writestr(name, text)


def records(path: Path) -> list[dict[str, Any]]:
    (part,) = open_parts(str(path))
    return [record.values for record in part.records()]


def test_a_number_is_what_its_format_shows(tmp_path):
    path = tmp_path / "a.xlsx"
    rows = [["甲", 6901234567890, 0.009, 24], ["乙", 1.5, 0.125, 12]]
    formats = {"B2": "0" * 14, "C2": "0.0%", "D2": '[Red]0"个月"_)', "C3": "0%"}
    formats["D3"] = '[$-804]G/通用格式"个月"'
    save_book(path, [HEADER, *rows], formats=formats)
    assert [list(map(to_text, row.values())) for row in records(path)] == [
        ["甲", "06901234567890", "0.9%", "24个月"],
        ["乙", "1.5", "12.5%", "12个月"],
    ]


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_power_of_ten_stays_one(is_shared, tmp_path):
    path = tmp_path / "a.xlsx"
    above = TextBlock(InlineFont(vertAlign="superscript"), "9")
    save_book(path, [HEADER, ["甲", "1", CellRichText("4~10×10", above, "/L"), "10m2"]])
    if is_shared:  # as spreadsheet programs write it
        cell = r't="inlineStr"><is>(<r>.*?)</is>'
        with ZipFile(path, "a") as package:
            [text] = re.findall(cell, package.read("xl/worksheets/sheet1.xml").decode())
            package.writestr("xl/sharedStrings.xml", f'<sst xmlns="a"><si>{text}</si></sst>')
        changed(path, "xl/worksheets/sheet1.xml", cell, 't="s"><v>0</v>')
    assert [row["规格"] for row in records(path)] == ["4~10×10^9/L"]


@pytest.mark.parametrize(
    "code", ["General", "0", "0.00", "#,##0", "yyyy-mm-dd", "[h]:mm", "@", "# ?/?", "0.00E+00"]
)
def test_other_formats_change_nothing(code):
    assert read_format(code) is None


def test_a_formula_without_a_value_and_words_that_cannot_be_repeated_are_named(tmp_path):
    rows = [HEADER, ["甲", 1, "=B2*2", "=1+1"]]
    save_book(tmp_path / "a.xlsx", rows, formats={"B2": '[>=9]0"盒";0"支"'})
    empty = r"<f>1\+1</f><v ?(/>|></v>)"
    changed(tmp_path / "a.xlsx", "xl/worksheets/sheet1.xml", empty, "<f>1+1</f><v>2</v>")
    [row] = records(tmp_path / "a.xlsx")
    assert all(isinstance(row[name], CellError) for name in ("条形码", "规格"))
    assert to_text(row["有效期"]) == "2"


def test_a_wrong_dimension_and_odd_styles_cost_no_row(tmp_path):
    path = tmp_path / "a.xlsx"
    save_book(path, [HEADER, ["甲", "1", "2", "3"], ["乙", "4", "5", "6"]])
    changed(path, "xl/worksheets/sheet1.xml", 'ref="A1:D3"', 'ref="A1"')
    changed(path, "xl/styles.xml", "<patternFill ?/>", "")
    assert [row["药品名称"] for row in records(path)] == ["甲", "乙"]


def test_a_table_may_begin_anywhere_and_stand_beside_a_chart(tmp_path):
    rows = [[], [], [], [None, "药品名称", "规格", "有效期"], [None, "甲", "=1+1", 24]]
    book = save_book(tmp_path / "a.xlsx", rows, formats={"D5": '0"个月"'})
    book.create_chartsheet("图")
    book.save(tmp_path / "a.xlsx")
    (part,) = open_parts(str(tmp_path / "a.xlsx"))
    [record] = part.records()
    assert (part.header, record.number, part.columns) == (4, 5, ["药品名称", "规格", "有效期"])
    assert isinstance(record.values["规格"], CellError)
    assert record.values["有效期"] == "24个月"


def test_names_in_a_merged_row_above_complete_the_header(tmp_path):
    path = tmp_path / "a.xlsx"
    rows = [["药品名称", "基本信息", None], [None, "剂型", "规格"], ["甲片", "片剂", "10mg"]]
    save_book(path, rows, merged=["A1:A2", "B1:C1"])
    assert records(path) == [{"药品名称": "甲片", "剂型": "片剂", "规格": "10mg"}]


def test_every_row_of_a_merged_cell_has_what_it_shows(tmp_path):
    path = tmp_path / "a.xlsx"
    rows = [["药品名称", "规格", "贮藏"], ["甲", 0.009, "=1+1"], ["乙"]]
    save_book(path, rows, merged=["B2:B3", "C2:C3"], formats={"B2": "0.0%"})
    assert [row["规格"] for row in records(path)] == ["0.9%", "0.9%"]
    assert all(isinstance(row["贮藏"], CellError) for row in records(path))


def test_a_row_of_one_merged_cell_is_marked(tmp_path):
    path = tmp_path / "a.xlsx"
    save_book(path, [HEADER, ["抗感染药"], ["甲", "1", "2", "3"]], merged=["A2:D2"])
    (part,) = open_parts(str(path))
    titles = [isinstance(record.values["药品名称"], Title) for record in part.records()]
    assert titles == [True, False]


def test_formats_are_not_held_for_a_whole_sheet(tmp_path):
    path = tmp_path / "a.xlsx"
    cells = [f"{column}{row}" for column in "ABCD" for row in range(2, 3002)]
    save_book(path, [HEADER, *([0.5] * 4 for _ in range(3000))], formats=dict.fromkeys(cells, "0%"))
    sheets, _ = read_workbook(path)
    tracemalloc.start()
    assert sum(1 for _ in sheets["Sheet"]()) == 3001
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000
