"""load_rows: files of every form become one form, bad ones are refused with the column and the row."""

import json
import os

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from sql_agent.intake.question_files import COLUMNS, DataError, load_rows, statements
from tests.corpora import cases_of


def write(path, columns):
    parquet.write_table(arrow.table(columns), path)
    return path


def test_rows_come_back_in_order_with_every_column(tmp_path):
    columns = {"id": ["b", "a"], "question": ["q1", "q2"], "answer": ["x", "y"], "n": [1, 2]}
    path = write(tmp_path / "a.parquet", columns)
    empty = dict.fromkeys(COLUMNS, "")
    assert load_rows(path) == [
        empty | {"id": "b", "question": "q1", "answer": "x", "n": 1},
        empty | {"id": "a", "question": "q2", "answer": "y", "n": 2},
    ]


NO_ROWS = dict.fromkeys(("id", "question"), arrow.array([], arrow.string()))
BAD_FILES = [*cases_of(__file__, "bad_files"), (NO_ROWS, "no rows")]


@pytest.mark.parametrize(("columns", "message"), BAD_FILES)
def test_bad_files_are_refused_with_the_place(tmp_path, columns, message):
    path = write(tmp_path / "bad.parquet", columns)
    with pytest.raises(DataError, match=r"bad\.parquet") as caught:
        load_rows(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_answers_by_id_is_refused_in_a_short_line(tmp_path):
    path = tmp_path / "label.json"
    path.write_text(json.dumps({f"question {number}": "SELECT 1" for number in range(1000)}))
    with pytest.raises(DataError, match=r"no column id, question; .*question 0.* more") as caught:
        load_rows(path)
    assert len(str(caught.value)) < 2000


def test_a_missing_file_a_folder_and_a_pipe(tmp_path):
    with pytest.raises(DataError, match=r"none\.parquet"):
        load_rows(tmp_path / "none.parquet")
    with pytest.raises(DataError, match="is a folder"):
        load_rows(tmp_path)
    os.mkfifo(tmp_path / "pipe")  # a file is read three times
    with pytest.raises(DataError, match="no file"):
        load_rows(tmp_path / "pipe")


@pytest.mark.parametrize("encoding", ["utf-16", "gbk", "utf-8-sig"])
def test_lines_of_json_may_be_in_another_encoding(tmp_path, encoding):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1471, "question": "片剂有几种规格？"}\n', encoding=encoding)
    (row,) = load_rows(path)
    assert (row["id"], row["question"]) == ("1471", "片剂有几种规格？")


[FOREIGN] = cases_of(__file__, "foreign")


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet"])
def test_other_names_and_nested_values_become_one_form(tmp_path, form):
    path = tmp_path / f"rows.{form}"
    if form == "parquet":
        parquet.write_table(arrow.Table.from_pylist([FOREIGN]), path)
    else:
        text = json.dumps(FOREIGN if form == "jsonl" else [FOREIGN], ensure_ascii=False)
        path.write_text("\ufeff" + text + "\n\n", encoding="utf-8")
    (row,) = load_rows(path)
    assert (row["id"], row["answer"]) == ("7", "**甲片**：孕妇禁用。")
    assert statements(row) == ["SELECT 1", "SELECT 2"]
    assert json.loads(row["entities"]) == ["甲片", "乙片"]
    quote = {"table": "drugs_info", "row_id": 7, "field": "contraindications"}
    assert json.loads(row["evidence"]) == [quote | {"quote": "孕妇<b>禁用</b>"}]
    assert "qid" not in row
    assert row["meta"]["entity"]["drug_id_a"] == 7


def test_a_null_under_our_own_name_hides_no_value_under_another(tmp_path):
    """Two sets put together have both names in every row."""
    item = {"table": None, "source_table": "disease", "row_id": 1, "field": "cause", "quote": "x"}
    row = {"id": None, "qid": "7", "question": "?", "answer": None, "ground_truth": "外用"}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**row, "evidence": [item]}))
    (row,) = load_rows(path)
    assert (row["id"], row["answer"]) == ("7", "外用")
    assert json.loads(row["evidence"])[0]["table"] == "disease"


@pytest.mark.parametrize(
    ("name", "content", "encoding", "message"),
    [
        *cases_of(__file__, "refused_question_files"),
        ("empty.jsonl", " \n" * 2_000, "utf-8", "empty.jsonl"),
        ("a.jsonl", '{"id": "a", "question": "q"}\n' + "[" * 100_000, "utf-8", "row 1: not JSON"),
    ],
)
def test_a_file_that_is_none_is_refused_with_the_place(tmp_path, name, content, encoding, message):
    (tmp_path / name).write_bytes(content.encode(encoding))
    with pytest.raises(DataError) as caught:
        load_rows(tmp_path / name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
