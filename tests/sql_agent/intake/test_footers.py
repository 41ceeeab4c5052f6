"""Tables as people keep them: totals, subtotals, signatures, merged cells, names of columns again."""

from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from sql_agent.intake.cells import Title
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
    signed = ["制表：张三", None, "审核：李四", datetime(2026, 11, 28)]  # as a workbook has it
    assert is_footer(dict(zip(HEADER, signed, strict=True)))
    assert [is_footer({"药品名称": Title(name)}) for name in ("其他", "三七")] == [True, False]


def test_a_long_cell_takes_no_time() -> None:
    assert not is_footer({"药品名称": "合计" + "1," * 20_000 + "x"})


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
