"""JSONL files: errors that name the line, outputs whole or not at all."""

from __future__ import annotations

import pytest

from common.jsonl import FileError, JsonlRows, read_jsonl, write_jsonl, write_text


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.jsonl"


def test_rows_come_back_with_their_lines(path):
    assert write_jsonl(path, [{"id": "一"}, {"id": "b"}], force=False) == 2
    assert list(read_jsonl(path)) == [(1, {"id": "一"}), (2, {"id": "b"})]
    path.write_bytes(b"\xef\xbb\xbf" + b'{"id": 1}\r\n\r\n{"id": 2}')
    assert list(read_jsonl(path)) == [(1, {"id": 1}), (3, {"id": 2})]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1}\n{"a": \n', "line 2: .*JSON"),
        (b"[1]\n", "line 1: .*object"),
        (b"\xb0\xa2\n", "line 1: .*UTF-8"),
        (b'{"a": "\\ud83d"}\n', "line 1"),
        (b"[" * 100_000, "line 1: .*JSON"),
    ],
)
def test_a_bad_line_is_named(path, content, words):
    path.write_bytes(content)
    with pytest.raises(FileError, match=words) as caught:
        list(read_jsonl(path))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileError, match=r"nothing\.jsonl.*No such file"):
        list(read_jsonl(tmp_path / "nothing.jsonl"))


def test_rows_are_checked_and_read_anew(path):
    write_jsonl(path, [{"id": str(number), "question": "?"} for number in range(5)], force=False)
    rows = JsonlRows(path, texts=("id", "question"), limit=3)
    assert len(rows) == 3
    assert list(rows) == list(rows) == [{"id": str(number), "question": "?"} for number in range(3)]
    assert (
        len(JsonlRows(path, path, texts=("id",)))
        == len(list(JsonlRows(path, path, texts=("id",), limit=10)))
        == 10
    )
    for bad, words in (
        ({"id": "1"}, "'question', found id"),
        ({"id": 1, "question": "?"}, "'id', found 1"),
    ):
        write_jsonl(path, [bad], force=True)
        with pytest.raises(FileError, match=f"line 1: expected text in {words}"):
            JsonlRows(path, texts=("id", "question"))
    path.write_text("\n")
    with pytest.raises(FileError, match="no rows"):
        JsonlRows(path, texts=("id",))


def test_nothing_is_overwritten_without_force(path):
    path.write_text("mine")
    with pytest.raises(FileError, match="--force"):
        write_jsonl(path, [{}], force=False)
    with pytest.raises(FileError, match="--force"):
        write_text(path, "other", force=False)
    assert path.read_text() == "mine"
    write_jsonl(path, [{}], force=True)
    assert path.read_text() == "{}\n"
