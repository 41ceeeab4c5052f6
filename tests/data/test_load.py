"""load_rows: good files pass, bad ones are refused with the column and the row."""

from __future__ import annotations

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.load import DataError, count_without_reference, load_rows


def write(path, columns):
    parquet.write_table(arrow.table(columns), path)
    return path


def test_rows_come_back_in_order_with_every_column(tmp_path):
    path = write(
        tmp_path / "a.parquet", {"id": ["b", "a"], "question": ["q1", "q2"], "answer": ["x", "y"], "n": [1, 2]}
    )
    assert load_rows(path) == [
        {"id": "b", "question": "q1", "answer": "x", "n": 1},
        {"id": "a", "question": "q2", "answer": "y", "n": 2},
    ]


def test_rows_without_a_reference_are_kept_and_counted(tmp_path):
    columns = {"id": ["a", "b", "c"], "question": ["q", "q", "q"]}
    some = load_rows(write(tmp_path / "some.parquet", columns | {"answer": [None, " ", "x"]}))
    assert [row["answer"] for row in some] == ["", "", "x"]
    assert count_without_reference(some) == 2
    none = load_rows(write(tmp_path / "none.parquet", columns))
    assert [row["answer"] for row in none] == ["", "", ""]
    assert count_without_reference(none) == 3


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"question": ["q"]}, "no column id; it has: question"),
        ({"id": ["a"], "answer": ["x"]}, "no column question"),
        ({"id": [1], "question": ["q"]}, "row 0, column id: 1 is int, expected text"),
        ({"id": ["a", "b"], "question": ["q", None]}, "row 1, column question: empty"),
        ({"id": ["a", "b"], "question": ["q", " "]}, "row 1, column question: empty"),
        ({"id": ["a", "b", "a"], "question": ["q", "r", "s"]}, "row 2, column id: 'a' is already the id of row 0"),
        ({"id": ["a"], "question": ["q"], "answer": [1.5]}, "row 0, column answer: 1.5 is float"),
        ({"id": ["a"], "question": ["q"], "sql": [["SELECT 1"]]}, "row 0, column sql"),
        ({"id": ["a"], "question": ["q"], "structured_gt": ["{"]}, "row 0, column structured_gt: not JSON"),
        ({"id": arrow.array([], arrow.string()), "question": arrow.array([], arrow.string())}, "no rows"),
    ],
)
def test_bad_files_are_refused_with_the_place(tmp_path, columns, message):
    path = write(tmp_path / "bad.parquet", columns)
    with pytest.raises(DataError, match=r"bad\.parquet") as caught:
        load_rows(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_folder_and_other_formats(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        load_rows(tmp_path / "none.parquet")
    with pytest.raises(DataError, match="is a folder"):
        load_rows(tmp_path)
    text = tmp_path / "text.parquet"
    text.write_text("id,question\n")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        load_rows(text)


@given(content=st.binary(max_size=400), cut=st.integers(0, 2000))
def test_damaged_files_raise_nothing_else(tmp_path_factory, content, cut):
    folder = tmp_path_factory.mktemp("damaged")
    whole = write(folder / "whole.parquet", {"id": ["a"], "question": ["q"]}).read_bytes()
    for damaged in (content, whole[:cut] + content + whole[cut:]):
        (folder / "x.parquet").write_bytes(damaged)
        try:
            rows = load_rows(folder / "x.parquet")
        except DataError:
            continue
        assert all(row["id"] and row["question"] for row in rows)
