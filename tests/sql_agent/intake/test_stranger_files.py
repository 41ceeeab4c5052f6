"""Tables of drugs as hospitals and shops keep them: every column finds its place."""

import json
from datetime import datetime

import pytest
import yaml

from data.records import SourceError
from sql_agent.intake.import_database import main
from sql_agent.intake.sources import open_parts
from tests.corpora import cases_of
from tests.messages import missing
from tests.sql_agent.intake.books import save_book, save_csv, stored

# Headers of a hospital's table, their places in ours, and a row's cells; the last one is a date
TABLE = cases_of(__file__, "hospital_table")
PLACES = {header: column for header, column, _ in TABLE}
ROW = [cell for *_, cell in TABLE[:-1]]
# As Excel writes one into a CSV file, and as it holds it.
DATES = ("2024/3/1", datetime(2024, 3, 1))

pytestmark = pytest.mark.system


def hospital(path, above=()):
    return save_csv(path, [*above, [*PLACES], [*ROW, DATES[0]]], "gb18030")


def imported(source, target, *options):
    assert main([str(source), "--to", f"sqlite:///{target}", *options]) == 0
    return stored(target)


def test_all_sixteen_columns_of_text_and_workbook_below_a_title_find_their_place(tmp_path, capsys):
    (row,) = imported(hospital(tmp_path / "a.csv"), tmp_path / "my.db")
    for column, cell in zip(PLACES.values(), ROW, strict=False):
        assert str(row[column]) == (f"{cell}个月" if column == "period" else cell)
    assert row["created_at"] == "2024-03-01"
    title = [["某某医院药品目录"], ["制表：药剂科", None, "2024-03-01"], []]
    save_book(tmp_path / "a.xlsx", [*title, [*PLACES], [*ROW, DATES[1]]])
    assert imported(tmp_path / "a.xlsx", tmp_path / "excel.db") == [row]
    assert "row 4" in capsys.readouterr().out
    text = hospital(tmp_path / "b.csv", above=[["某某医院药品目录"], []])
    assert imported(text, tmp_path / "csv.db") == [row]


def test_a_header_that_is_not_found_can_be_given(tmp_path):
    rows = [["注意事项", "见下"], ["甲", "乙"], ["阿片", "头痛"]]
    (part,) = open_parts(str(save_csv(tmp_path / "a.csv", rows)), header_row=2)
    assert (part.columns, [record.number for record in part.records()]) == (["甲", "乙"], [3])
    with pytest.raises(SourceError, match="row 9"):
        open_parts(str(tmp_path / "a.csv"), header_row=9)
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n', encoding="utf-8")
    with pytest.raises(SourceError, match="--header-row"):
        open_parts(str(tmp_path / "a.jsonl"), header_row=2)


def test_days_are_dates_where_a_column_holds_dates_and_named_elsewhere(tmp_path, capsys):
    header = ["药品名称", "规格", "创建日期"]
    day = datetime(2024, 1, 2)
    save_book(tmp_path / "a.xlsx", [header, ["甲片", "1g", 45352], ["乙片", "2g", day]])
    assert [row["created_at"] for row in imported(tmp_path / "a.xlsx", tmp_path / "my.db")] == [
        "2024-03-01",
        "2024-01-02",
    ]
    save_book(tmp_path / "b.xlsx", [header, ["甲片", day, day], ["乙片", "2-Jan", day]])
    assert main([str(tmp_path / "b.xlsx"), "--to", f"sqlite:///{tmp_path / 'b.db'}"]) == 1
    out = capsys.readouterr().out
    assert not missing(out, "row 2, column 规格", "row 3, column 规格", "2-Jan")


def test_what_a_workbook_hides_is_said(tmp_path, capsys):
    header = ["药品名称", "适应症"]
    book = save_book(tmp_path / "a.xlsx", [header, ["甲片", "头痛"], ["乙片", "咳嗽"]])
    book.active.row_dimensions[3].hidden = True
    old = book.create_sheet("旧目录")
    for row in (header, ["旧片", "头痛"]):
        old.append(row)
    old.sheet_state = "hidden"
    book.save(tmp_path / "a.xlsx")
    names = [row["med_name"] for row in imported(tmp_path / "a.xlsx", tmp_path / "my.db")]
    assert names == ["甲片", "乙片"]
    assert "--part 旧目录" in capsys.readouterr().out
    [row] = imported(tmp_path / "a.xlsx", tmp_path / "old.db", "--part", "旧目录")
    assert row["med_name"] == "旧片"


def test_a_mapping_is_for_the_sheets_that_have_its_columns(tmp_path, capsys):
    book = save_book(tmp_path / "a.xlsx", [["填写说明"]])
    sheet = book.create_sheet("药品")
    for row in (["药品名称", "剂型大类"], ["甲片", "片剂"]):
        sheet.append(row)
    book.save(tmp_path / "a.xlsx")
    mapping = tmp_path / "m.yaml"
    mapping.write_text("剂型大类: form\n", encoding="utf-8")
    [row] = imported(tmp_path / "a.xlsx", tmp_path / "my.db", "--mapping", str(mapping))
    assert row["form"] == "片剂"
    mapping.write_text("剂型小类: form\n", encoding="utf-8")
    target = f"sqlite:///{tmp_path / 'b.db'}"
    assert main([str(tmp_path / "a.xlsx"), "--to", target, "--mapping", str(mapping)]) == 2
    assert not missing(capsys.readouterr().err, "剂型小类", "剂型大类")


def test_thousands_of_columns_are_a_short_message(tmp_path, capsys):
    columns = ["药品名称", *(f"c{number}" for number in range(3_000))]
    source = save_csv(tmp_path / "a.csv", [columns, ["甲片"] + [""] * 3_000])
    assert main([str(source), "--to", f"sqlite:///{tmp_path / 'my.db'}"]) == 2
    said = "".join(capsys.readouterr())
    assert len(said) < 5_000
    assert "3000 of 3001" in said


def test_a_label_of_openfda_is_a_drug(tmp_path):
    """Values inside objects have columns, and long numbers all digits."""
    label = {
        "id": "0b7f8d1e-1",
        "indications_and_usage": ["For pain"],
        "openfda": {
            "generic_name": ["ASPIRIN"],
            "manufacturer_name": ["Bayer"],
            "inner": {"dosage_form": "TABLET"},
        },
        "active_ingredients": [{"name": "ASPIRIN", "strength": "81 mg"}],
        "barcode": 69012345678901234567,
    }
    source = tmp_path / "label.json"
    source.write_text(json.dumps({"meta": {}, "results": [label]}), encoding="utf-8")
    [row] = imported(source, tmp_path / "my.db")
    columns = ("med_name", "indication", "company_name", "form", "component", "med_barcode")
    assert [row[column] for column in columns] == [
        *("ASPIRIN", "For pain", "Bayer", "TABLET"),
        *("ASPIRIN 81 mg", "69012345678901234567"),
    ]


def test_more_than_half_unknown_is_a_failure_until_it_is_decided(tmp_path, capsys):
    """The lines that are shown are the whole way on: pasted into a file they are accepted."""
    source = save_csv(
        tmp_path / "a.csv",
        [["药品名称", "价格", "医保：类型", "不良反应情形"], ["甲片", "9.5", "甲类", "恶心"]],
    )
    target = ["--to", f"sqlite:///{tmp_path / 'my.db'}"]
    assert main([str(source), *target, "--dry-run"]) == 2
    out, err = capsys.readouterr()
    assert not missing(err, "3 of 4", "drugs_info", "--mapping")
    assert not (tmp_path / "my.db").exists()
    lines = "\n".join(out.split("lines for the file of --mapping:\n")[1].splitlines())
    assert yaml.safe_load(lines) == dict.fromkeys(("价格", "医保：类型", "不良反应情形"))
    (tmp_path / "m.yaml").write_text(lines, encoding="utf-8")
    (row,) = imported(source, tmp_path / "my.db", "--mapping", str(tmp_path / "m.yaml"))
    assert (row["med_name"], row["adverse_reactions"]) == ("甲片", None)
