"""Every kind of source gives the same rows; damaged ones are refused in one line."""

import json
import sqlite3
from datetime import date
from pathlib import Path
from zipfile import ZipFile

import openpyxl
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.records import SourceError
from sql_agent.intake.cells import CellError, to_text
from sql_agent.intake.sources import open_parts
from tests.corpora import cases_of, write_lines
from tests.sql_agent.intake.books import save_book, save_csv

COLUMNS = ["药品名称", "适应症"]
ROWS = [["阿莫西林胶囊", "敏感菌感染，\n如肺炎"], ["布洛芬片", '发热"痛"']]


def write_source(folder, kind):
    path = folder / f"a.{kind}"
    objects = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
    if kind == "xlsx":
        save_book(path, [COLUMNS, *ROWS], "药品")
    elif kind == "parquet":
        parquet.write_table(arrow.Table.from_pylist(objects), path)
    elif kind == "json":
        path.write_text(json.dumps(objects, ensure_ascii=False), encoding="utf-8")
    elif kind == "jsonl":
        write_lines(path, objects)
    elif kind == "db":
        with sqlite3.connect(path) as connection:
            connection.execute(f"CREATE TABLE a ({', '.join(COLUMNS)})")
            connection.executemany("INSERT INTO a VALUES (?, ?)", ROWS)
        return f"sqlite:///{path}"
    else:
        save_csv(path, [COLUMNS, *ROWS], delimiter="\t" if kind == "tsv" else ",")
    return str(path)


def values(part):
    return [list(record.values.values()) for record in part.records()]


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx", "parquet", "json", "jsonl", "db"])
def test_every_kind_gives_the_same_rows_as_often_as_asked(tmp_path, kind):
    (part,) = open_parts(write_source(tmp_path, kind))
    assert part.columns == COLUMNS
    expected = sorted(ROWS) if kind == "db" else ROWS
    assert values(part) == expected
    assert values(part) == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", "，", "^", "~", "、"])
def test_encodings_and_delimiters_are_found_out(tmp_path, encoding, delimiter):
    (part,) = open_parts(str(save_csv(tmp_path / "a.csv", [COLUMNS, *ROWS], encoding, delimiter)))
    assert part.columns == COLUMNS
    assert values(part) == ROWS


@pytest.mark.parametrize(("name", "text"), cases_of(__file__, "text_tables"))
def test_tables_in_text_are_read_as_a_person_reads_them(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (part,) = open_parts(str(tmp_path / name))
    names = {column.strip(): column for column in part.columns}
    [row] = [record for record in part.records() if any(map(to_text, record.values.values()))]
    assert row.problem is None
    assert [to_text(row.values[names[column]]) for column in COLUMNS] == ["甲片", "头痛"]


@pytest.mark.parametrize(("text", "columns", "rows"), cases_of(__file__, "odd_names"))
def test_odd_names_are_numbered_and_punctuation_in_one_column_is_no_delimiter(
    tmp_path: Path, text: str, columns: list[str], rows: list[list[str]]
) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    (part,) = open_parts(str(tmp_path / "a.csv"))
    assert (part.columns, values(part)) == (columns, rows)


@pytest.mark.parametrize(("encoding", "text"), cases_of(__file__, "encodings"))
def test_a_file_wholly_in_another_encoding_is_read_whatever_a_line_looks_like(
    tmp_path: Path, encoding: str, text: str
) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    (part,) = open_parts(str(tmp_path / "a.csv"))
    assert [part.columns, *values(part)] == [line.split(",") for line in text.splitlines()]
    assert encoding.upper() in part.note


@pytest.mark.parametrize("name", ["1", "12"])
def test_no_long_file_is_cut_within_a_character(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.csv").write_text(
        f"med_name,indication\n{name},{'头痛' * 20_000}", encoding="gb18030"
    )
    (part,) = open_parts(str(tmp_path / "a.csv"))
    assert values(part)[0][0] == name


def test_a_file_in_two_encodings_is_refused_with_both_lines(tmp_path: Path) -> None:
    lines = ["药品名称|适应症".encode("gbk"), "甲片|头痛".encode("gbk"), "乙片|咳嗽痰多".encode()]
    content = b"\n".join(lines) + "|口服".encode("gbk")
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(SourceError, match=r"line 1 .* line 3"):
        open_parts(str(tmp_path / "a.csv"))


@pytest.mark.parametrize(("most", "odd", "encoding"), cases_of(__file__, "odd_bytes"))
@pytest.mark.parametrize("n_rows", [3, 300])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_an_odd_byte_among_lines_of_utf8_makes_no_other_text_of_them(
    tmp_path: Path, most: str, odd: str, encoding: str, n_rows: int, end: bytes
) -> None:
    texts = [most.encode()] * n_rows + [odd.encode(encoding)]
    rows = [b'{"text":"' + text + b'"}' for text in texts]
    path = tmp_path / "a.json"
    path.write_bytes(b"[" + (b"," + end).join(rows) + b"]")
    with pytest.raises(SourceError):
        open_parts(str(path))


@pytest.mark.parametrize(("name", "text"), cases_of(__file__, "json_forms"))
def test_forms_of_json_without_a_list_of_objects(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (part,) = open_parts(str(tmp_path / name))
    rows = [[record.values.get(column) for column in COLUMNS] for record in part.records()]
    assert rows == [["甲片", "头痛"], ["乙片", None]]


def test_lists_in_a_json_file_are_parts_by_their_path(tmp_path: Path) -> None:
    held = {"data": {"drugs": [{"药品名称": "甲片"}]}, "users": [{"user": "a"}]}
    held["data.drugs"] = [{"药品名称": "乙片"}]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(held), encoding="utf-8")
    assert [part.name for part in open_parts(str(path))] == ["data.drugs", "users"]
    [part] = open_parts(str(path), name="data.drugs")
    assert values(part) == [["甲片"], ["乙片"]]
    with pytest.raises(SourceError, match=r"'drugs'.*data\.drugs, users"):
        open_parts(str(path), name="drugs")


def test_json_nested_deep_is_refused_before_it_fills_the_memory(tmp_path):
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(SourceError, match="nested too deep"):
        open_parts(str(tmp_path / "a.json"))


def test_text_in_no_known_encoding_and_a_wrong_one_given(tmp_path):
    (tmp_path / "a.csv").write_bytes("药品名称\n".encode() + b"\xff\xff\n")
    with pytest.raises(SourceError, match="give --encoding"):
        open_parts(str(tmp_path / "a.csv"))
    for encoding in ("ascii", "no-such"):
        with pytest.raises(SourceError, match=encoding):
            open_parts(str(tmp_path / "a.csv"), encoding)


def test_sheets_types_and_failed_formulas_of_a_workbook(tmp_path):
    path = tmp_path / "a.xlsx"
    book = openpyxl.Workbook()
    book.active.title = "空"
    sheet = book.create_sheet("药品")
    for row in (
        ["药品名称", "条形码", "创建时间"],
        ["甲", 6901234567890, date(2025, 1, 2)],
        ["乙", 1],
        ["", 2],
    ):
        sheet.append(row)
    sheet["A4"] = "#N/A"
    sheet["A4"].data_type = "e"
    book.save(path)
    (part,) = open_parts(str(path))
    assert part.name == "药品"
    first, second, third = part.records()
    assert first.values["条形码"] == 6901234567890
    assert to_text(first.values["创建时间"]) == "2025-01-02"
    assert second.values["药品名称"] == "乙"
    assert isinstance(third.values["药品名称"], CellError)
    assert "#N/A" in str(third.values["药品名称"])
    with pytest.raises(SourceError, match=r"'x' .*药品"):
        open_parts(str(path), name="x")


@pytest.mark.parametrize(
    ("name", "content", "encoding", "message"), cases_of(__file__, "damaged_files")
)
def test_damaged_files_are_one_line(tmp_path, name, content, encoding, message):
    (tmp_path / name).write_bytes(content.encode(encoding))
    with pytest.raises(SourceError, match=message) as caught:
        [record for part in open_parts(str(tmp_path / name)) for record in part.records()]
    assert "\n" not in str(caught.value)


def test_a_zip_file_that_is_no_workbook_is_named_by_what_it_holds(tmp_path):
    path = tmp_path / "a.xlsx"
    with ZipFile(path, "w") as package:
        package.writestr("drugs.csv", "药品名称")
    with pytest.raises(SourceError, match=r"drugs\.csv.* unpack"):
        open_parts(str(path))
    content = path.read_bytes().replace(
        b"PK\1\2\x14\3\x14", b"PK\1\2\x14\3\x63"
    )  # zip's version 9.9
    path.write_bytes(content)
    with pytest.raises(SourceError, match="damaged"):
        open_parts(str(path))


@pytest.mark.parametrize(("source", "message"), cases_of(__file__, "sources_not_there"))
def test_sources_that_are_not_there_are_one_line_without_password(source, message):
    with pytest.raises(SourceError, match=message) as caught:
        open_parts(source)
    assert "\n" not in str(caught.value)
    assert "canary" not in str(caught.value)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(
    content=st.binary(max_size=200),
    kind=st.sampled_from(["csv", "tsv", "json", "jsonl", "xlsx", "parquet"]),
)
def test_any_bytes_are_rows_or_one_line(tmp_path, content, kind):
    path = tmp_path / f"a.{kind}"
    path.write_bytes(content)
    try:
        for part in open_parts(str(path)):
            list(part.records())
    except SourceError as error:
        line = str(error)
    else:
        line = "rows"
    assert line.count("\n") == 0


def test_a_short_float_of_parquet_is_what_it_was_written_as(tmp_path):
    path = tmp_path / "a.parquet"
    packs = arrow.array([0.1, None, 2.5], arrow.float32())
    parquet.write_table(arrow.table({"药品名称": ["甲", "乙", "丙"], "包装": packs}), path)
    (part,) = open_parts(str(path))
    assert values(part) == [["甲", 0.1], ["乙", None], ["丙", 2.5]]


def test_odd_names_of_parquet_are_read_as_those_of_a_sheet(tmp_path):
    path = tmp_path / "a.parquet"
    names = [" 药品名称", "", "库位", "库位"]
    parquet.write_table(arrow.table([["甲"], ["x"], ["A1"], ["A2"]], names), path)
    (part,) = open_parts(str(path))
    row = {"药品名称": "甲", "column 2": "x", "库位 (3)": "A1", "库位 (4)": "A2"}
    assert [record.values for record in part.records()] == [row]
    assert part.columns == list(row)


def test_sqlite_gives_what_it_stores_whatever_a_column_declares(tmp_path):
    path = tmp_path / "药 #1.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE a (id INTEGER PRIMARY KEY, code DECIMAL(18, 0), pack DECIMAL(10, 2), "
            "made DATE, sold BOOLEAN REFERENCES gone (x))"
        )
        midnight = "2024-01-05 00:00:00.000000"
        lines = [(1, 812345678901234567, 0.125, midnight, 1), (2, "无", "5mg", "2024/1/5", 2)]
        connection.executemany("INSERT INTO a VALUES (?, ?, ?, ?, ?)", lines)
    (part,) = open_parts(f"sqlite:///{path}")
    assert [[to_text(cell) for cell in row] for row in values(part)] == [
        ["1", "812345678901234567", "0.125", "2024-01-05", "1"],
        ["2", "无", "5mg", "2024-01-05", "2"],
    ]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
