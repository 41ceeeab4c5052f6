"""What stands in people's tables and is no row: totals, subtotals, signatures, merged cells.

Keeps of docs/your-data.md: none of it becomes a drug, and nothing is left out without a word.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import openpyxl
import pytest

from sql_agent.intake.footers import is_footer
from sql_agent.intake.import_database import main
from tests.messages import missing

HEADER = ["药品名称", "适应症", "规格", "生产企业"]


@pytest.mark.parametrize(
    ("cells", "is_one"),
    [
        (["合计", None, "1,280.50", 12], True),
        (["Total", "", "42", ""], True),
        (["制表人：张三", "审核人：李四", None, "日期：2024年5月1日"], True),
        (["注：以上价格含税", "", "", ""], True),
        (["第 1 页", "共 3 页", "", ""], True),
        (["一、抗感染药", "", "", ""], True),
        (["合计：3种", None, None, None], True),
        (["总计3种", None, None, None], True),
        (["共计:3个品种", None, None, None], True),
        (["小计 3", None, None, None], True),
        (["合计（元）：1,280.50元", "", "", ""], True),
        (["总计：三种，120盒", "", "", "制表人：李明"], True),
        (["Total: 3 items", "", "", ""], True),
        (["药剂科主任：王", None, None, None], True),
        (["采购员:", "库管员：张三丰", "", ""], True),
        (["主管药师（签字）：李明 2024年5月1日", "", "", ""], True),
        (["Chief pharmacist: J. Smith", "", "", ""], True),
        (["医生推荐：复方丹参片", "", "", ""], False),
        (["院长：复方丹参滴丸", "", "", ""], False),
        (["Total 3 in 1", "", "", ""], False),
        (["均值片 3", "", "", ""], False),
        (["三七片", "", "", ""], False),
        (["千金片", "", "", "12"], False),
        (["合计", "头痛", "10g", "某药厂"], False),  # strange, but it says something of its own
        (["共济失调片", "", "12", ""], False),
        (["Totalin", "", "", ""], False),
        (["日期：见包装", "头痛", "", ""], False),
        (["5-氟尿嘧啶", "", "", ""], False),
        ([None, None, None, None], False),
    ],
)
def test_totals_titles_and_signatures_are_no_rows(cells: list[object], is_one: bool) -> None:
    assert is_footer(dict(zip(HEADER, cells, strict=True))) is is_one


def test_a_long_cell_takes_no_time() -> None:
    assert not is_footer({"药品名称": "合计" + "1," * 20_000 + "x"})


def names(target: Path) -> list[str]:
    with sqlite3.connect(target) as database:
        return [name for (name,) in database.execute("SELECT med_name FROM drugs_info ORDER BY id")]


def test_they_are_left_out_of_a_text_file_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "drugs.csv", tmp_path / "my.db"
    lines = [
        "药品名称,适应症,用法用量",
        "甲片,头痛,一次1片",
        "小计,,1",
        "乙片,咳嗽,一次2片",
        "制表人：张三",
    ]
    source.write_text("\n".join(lines), encoding="gb18030")
    assert main([str(source), "--to", f"sqlite:///{target}", "--replace"]) == 0
    said = capsys.readouterr().out
    assert names(target) == ["甲片", "乙片"]
    assert not missing(said, "2 rows ready", "2 total, title or signature", "row 5", "制表人：张三")
    assert not missing(said, "GB18030", "--encoding")


def test_merged_cells_have_their_value_in_every_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "drugs.xlsx", tmp_path / "my.db"
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (
        ["药品名称", "生产企业", "适应症"],
        ["甲片", "东山药厂", "头痛"],
        ["乙片", None, "咳嗽"],
        ["丁片", "西山药厂", "胃痛"],
        ["合计", None, None],
    ):
        sheet.append(row)
    sheet.merge_cells("B2:B3")
    book.save(source)
    assert main([str(source), "--to", f"sqlite:///{target}", "--replace"]) == 0
    with sqlite3.connect(target) as database:
        found = database.execute("SELECT med_name, company_name FROM drugs_info ORDER BY id")
        assert found.fetchall() == [
            ("甲片", "东山药厂"),
            ("乙片", "东山药厂"),
            ("丁片", "西山药厂"),
        ]
    assert "1 total, title or signature" in capsys.readouterr().out


def test_lists_in_a_json_file_are_parts_by_their_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "export.json", tmp_path / "my.db"
    drugs = [{"药品名称": "甲片", "适应症": "头痛"}, {"药品名称": "乙片", "适应症": "咳嗽"}]
    users = [{"user": "a", "role": "admin"}]
    source.write_text(
        json.dumps({"version": 2, "data": {"drugs": drugs}, "users": users}, ensure_ascii=False)
    )
    arguments = [str(source), "--to", f"sqlite:///{target}", "--replace"]
    assert main([*arguments, "--part", "data.drugs"]) == 0
    assert names(target) == ["甲片", "乙片"]
    assert main([*arguments, "--part", "drugs"]) == 2
    assert not missing(capsys.readouterr().err, "data.drugs", "users")
