"""Outputs appear whole or not at all.

Keeps of docs/your-data.md: a program writes its outputs at once, and replaces none unasked.
"""

from __future__ import annotations

import os

import pytest

from common import files
from common.files import (
    FileError,
    check_temporary,
    check_writable,
    refuse_existing,
    replacing,
)


def test_a_file_and_a_folder_take_the_place_of_what_was_there(tmp_path) -> None:
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
def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path, make) -> None:
    (tmp_path / "file").write_text("old")

    def fail() -> None:
        with replacing(tmp_path / "file") as draft:
            make(draft)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_is_on_the_disk_before_it_takes_a_place(tmp_path, monkeypatch) -> None:
    """After a power loss it would be there and empty, and what it replaced gone."""
    happened = []
    synced, replaced = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda *what: happened.append("synced") or synced(*what))
    monkeypatch.setattr(os, "replace", lambda *what: happened.append("there") or replaced(*what))
    with replacing(tmp_path / "file") as draft:
        draft.write_text("x")
    assert happened == ["synced", "there"]


def test_what_exists_is_refused_before_the_work(tmp_path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileError, match="--force"):
        refuse_existing(tmp_path / "file", force=False)
    refuse_existing(tmp_path / "file", force=True)
    for path, said in ((tmp_path, "folder"), (tmp_path / "no" / "file", "no folder")):
        with pytest.raises(FileError, match=said):
            refuse_existing(path, force=True)


def test_a_full_folder_for_temporary_files_is_named_as_such(tmp_path, monkeypatch) -> None:
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


def test_whether_a_folder_can_be_written_is_seen_before_it_is_made(tmp_path) -> None:
    check_writable(tmp_path / "a" / "b", "--run-dir")
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file" / "run", tmp_path / "file"):
        with pytest.raises(FileError, match=rf"{place}.*--run-dir"):
            check_writable(place, "--run-dir")
    with pytest.raises(FileError, match="/proc/run"):
        check_writable(files.Path("/proc/run"), "--run-dir")
