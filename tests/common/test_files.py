"""Outputs appear whole or not at all; a bad line of a file is named."""

import fcntl
import os
import time
from unittest.mock import Mock

import pytest

from common import files
from common.files import FileError, check_temporary, check_writable, refuse_existing, replacing
from common.jsonl import read_jsonl, rows_with_texts, write_jsonl, write_text


def test_a_file_and_a_folder_take_the_place_of_what_was_there(tmp_path):
    for before in ("nothing", "something"):
        with replacing(tmp_path / "file") as draft:
            draft.write_text(before)
            draft.with_name("file-wal").write_text("left by a library")
            assert not (tmp_path / "file").exists() or (tmp_path / "file").read_text() == "nothing"
        with replacing(tmp_path / "folder") as draft:
            draft.mkdir()
            (draft / before).write_text("x")
        assert (tmp_path / "file").read_text() == before
        assert os.listdir(tmp_path / "folder") == [before]
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.parametrize(
    "make", [lambda draft: draft.write_text("half"), lambda draft: draft.mkdir(), lambda draft: 0]
)
def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path, make):
    (tmp_path / "file").write_text("old")

    def fail() -> None:
        with replacing(tmp_path / "file") as draft:
            make(draft)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_what_killed_programs_left_is_removed_and_nothing_else(tmp_path, monkeypatch):
    """Not what another writes or has just made, nor what is no draft; on a disk without locks none."""
    left = {".file.abcdefgh.tmp", ".file.2026-11.tmp"}

    def write(modified: float) -> set[str]:
        for name in left:
            (tmp_path / name).mkdir(exist_ok=True)
            os.utime(tmp_path / name, (modified, modified))
        with replacing(tmp_path / "file") as draft:
            os.utime(draft.parent, (modified, modified))
            write_text(tmp_path / "file", "another's", force=True)
            draft.touch()
        return {*os.listdir(tmp_path)}

    assert write(time.time()) == {*left, "file"}
    with monkeypatch.context() as without_locks:
        without_locks.setattr(fcntl, "flock", Mock(side_effect=OSError))
        assert write(0) == {*left, "file"}
    assert write(0) == {".file.2026-11.tmp", "file"}


def test_a_file_is_on_the_disk_before_it_takes_a_place(tmp_path, monkeypatch):
    """After a power loss it would be there and empty, and what it replaced gone."""
    happened = []
    synced, replaced = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda *what: happened.append("synced") or synced(*what))
    monkeypatch.setattr(os, "replace", lambda *what: happened.append("there") or replaced(*what))
    with replacing(tmp_path / "file") as draft:
        draft.write_text("x")
    assert happened == ["synced", "there"]


def test_what_exists_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileError, match="--force"):
        refuse_existing(tmp_path / "file", force=False)
    refuse_existing(tmp_path / "file", force=True)
    for path in (tmp_path, tmp_path / "file" / "out", tmp_path / "file" / "a" / "out"):
        with pytest.raises(FileError, match="folder"):
            refuse_existing(path, force=True)


def test_a_full_folder_for_temporary_files_is_named_as_such(tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(files, "TEMPORARY_BYTES", 0)
    assert check_temporary() == tmp_path
    monkeypatch.setattr(files, "TEMPORARY_BYTES", 10**18)
    with pytest.raises(FileError, match=rf"{tmp_path}.* full.*TMPDIR"):
        check_temporary()
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / "none"))
    with pytest.raises(FileError, match="RAY_TMPDIR"):
        check_temporary()


def test_whether_a_folder_can_be_written_is_seen_before_it_is_made(tmp_path):
    check_writable(tmp_path / "a" / "b", "--run-dir")
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file" / "run", tmp_path / "file"):
        with pytest.raises(FileError, match=rf"{place}.*--run-dir"):
            check_writable(place, "--run-dir")
    with pytest.raises(FileError, match="/proc/run"):
        check_writable(files.Path("/proc/run"), "--run-dir")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.jsonl"


def test_rows_come_back_with_their_lines(tmp_path):
    path = tmp_path / "made" / "when written" / "rows.jsonl"
    refuse_existing(path, force=False)
    assert os.listdir(tmp_path) == []
    assert write_jsonl(path, [{"id": "一"}, {"id": "b"}], force=False) == 2
    assert list(read_jsonl(path)) == [(1, {"id": "一"}), (2, {"id": "b"})]
    path.write_bytes(b"\xef\xbb\xbf" + b'{"id": 1}\r\n\r\n{"id": 2, "id": 2}')
    assert list(read_jsonl(path)) == [(1, {"id": 1}), (3, {"id": 2})]
    with pytest.raises(FileError, match=r"row 2: .* set .*text"):
        write_jsonl(path, [{}, {"seen": {1}}], force=True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1}\n{"a": \n', "line 2: .*JSON"),
        (b"[1]\n", "line 1: .*object"),
        (b'{"a": {"Hb": 9, "Hb": 8}}\n', "line 1: .*'Hb' is twice"),
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


def test_rows_without_a_text_are_refused(path):
    write_jsonl(path, [{"id": str(number), "question": "?"} for number in range(5)], force=False)
    rows = rows_with_texts([path, path], ("id", "question"))
    assert rows == 2 * [{"id": str(number), "question": "?"} for number in range(5)]
    for bad, words in (
        ({"id": "1"}, "'question', got id"),
        ({"id": 1, "question": "?"}, "'id', got 1"),
    ):
        write_jsonl(path, [bad], force=True)
        with pytest.raises(FileError, match=f"line 1: expected text in {words}"):
            rows_with_texts([path], ("id", "question"))
    path.write_text("\n")
    with pytest.raises(FileError, match="no rows"):
        rows_with_texts([path], ("id",))
