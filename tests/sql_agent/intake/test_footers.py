"""What stands in people's tables and is no row: totals, subtotals, signatures, merged cells."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from sql_agent.intake.import_database import main
from sql_agent.intake.left_out import is_footer
from tests.corpora import cases_of
from tests.messages import missing
from tests.sql_agent.intake.books import save_book

HEADER = ["药品名称", "适应症", "规格", "生产企业"]


def test_totals_titles_and_signatures_are_no_rows() -> None:
    for case in cases_of(__file__, "footers"):
        cells = dict(zip(HEADER, case["cells"], strict=True))
        assert is_footer(cells) is case["left_out"], case


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
        "制表人：张三,,2026-11-28",
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
    rows: list[list[Any]] = [
        ["药品名称", "生产企业", "适应症"],
        ["甲片", "东山药厂", "头痛"],
        ["乙片", None, "咳嗽"],
        ["丁片", "西山药厂", "胃痛"],
        ["合计", None, None],
    ]
    book = save_book(source, rows)
    book["Sheet"].merge_cells("B2:B3")
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


def test_a_signature_under_a_workbook_s_numbers_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "drugs.xlsx", tmp_path / "my.db"
    rows: list[list[Any]] = [
        ["序号", "通用名", "规格", "适应症"],
        [1, "甲片", "1g", "头痛"],
        [2, "乙片", "1g", "咳嗽"],
        ["制表：张三", None, "审核：李四", datetime(2026, 11, 28)],
    ]
    save_book(source, rows)
    assert main([str(source), "--to", f"sqlite:///{target}"]) == 0
    assert names(target) == ["甲片", "乙片"]
    assert not missing(capsys.readouterr().out, "row 4", "制表：张三", "1 total")


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


def written(path: Path, rows: list[list[str]]) -> str:
    path.write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "again",
    [
        HEADER,
        ["Drug name", "Indications", "Specification", "Manufacturer"],
        ["1", "2", "3", "4"],
        ["(1)", "(2)", "(3)", "(4)"],
        ["①", "②", "③", "④"],
        ["甲", "乙", "丙", "丁"],
    ],
)
def test_names_of_columns_again_are_no_drug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], again: list[str]
) -> None:
    rows = [HEADER, again, ["甲片", "头痛", "1g", "某厂"], again, ["乙片", "咳嗽", "2g", "某厂"]]
    source = written(tmp_path / "a.csv", rows)
    assert main([source, "--to", f"sqlite:///{tmp_path / 'my.db'}"]) == 0
    assert names(tmp_path / "my.db") == ["甲片", "乙片"]
    assert not missing(capsys.readouterr().out, "2 rows ready", "row 2", "row 4", again[0])


def test_a_table_with_other_columns_below_is_refused_with_its_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = ["药品名称", "规格", "适应症", "生产企业"]
    rows = [HEADER, ["甲片", "头痛", "1g", "某厂"], other, ["乙片", "2g", "咳嗽", "某厂"]]
    source = written(tmp_path / "a.csv", rows)
    assert main([source, "--to", f"sqlite:///{tmp_path / 'my.db'}"]) == 2
    assert not missing(capsys.readouterr().err, "row 3", "'规格'", "'适应症'")
    assert not (tmp_path / "my.db").exists()


def test_a_table_on_its_side_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path / "a.csv", [["药品名称", "甲片"], ["规格", "1g"], ["适应症", "头痛"]])
    assert main([source, "--to", f"sqlite:///{tmp_path / 'my.db'}"]) == 2
    assert not missing(capsys.readouterr().err, "规格", "适应症")
