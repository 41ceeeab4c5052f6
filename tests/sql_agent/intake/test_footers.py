"""Tables as people keep them: totals, subtotals, signatures, merged cells, names of columns again."""

import json
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from sql_agent.intake.import_database import main
from sql_agent.intake.left_out import is_footer
from tests.corpora import cases_of
from tests.messages import missing
from tests.sql_agent.intake.books import save_book, save_csv, stored

HEADER = ["药品名称", "适应症", "规格", "生产企业"]


def test_totals_titles_and_signatures_are_no_rows() -> None:
    for case in cases_of(__file__, "footers"):
        cells = dict(zip(HEADER, case["cells"], strict=True))
        assert is_footer(cells) is case["left_out"], case


def test_a_long_cell_takes_no_time() -> None:
    assert not is_footer({"药品名称": "合计" + "1," * 20_000 + "x"})


def names(target: Path) -> list[str]:
    return [row["med_name"] for row in stored(target)]


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


@pytest.mark.parametrize("case", cases_of(__file__, "tables_of_people"), ids=itemgetter("why"))
def test_tables_as_people_keep_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: dict[str, Any]
) -> None:
    source, target = tmp_path / case["file"], tmp_path / "my.db"
    if source.suffix == ".xlsx":
        save_book(source, case["rows"], merged=case["merged"])
    else:
        save_csv(source, case["rows"], case.get("encoding", "utf-8"))
    options = case.get("options", [])
    if mapping := case.get("mapping"):
        (tmp_path / "m.yaml").write_text(mapping, encoding="utf-8")
        options = [*options, "--mapping", str(tmp_path / "m.yaml")]
    assert main([str(source), "--to", f"sqlite:///{target}", *options]) == case["code"]
    assert not missing("".join(capsys.readouterr()), *case["said"])
    assert target.exists() is (case["stored"] is not None)
    for column, cells in (case["stored"] or {}).items():
        rows = stored(target, case.get("table", "drugs_info"))
        assert [row[column] for row in rows] == cells
