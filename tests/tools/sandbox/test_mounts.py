"""What a sandbox needs before it starts: bubblewrap, and data that is there."""

import shutil

import pytest

from tests.messages import missing
from tools.sandbox import mounts
from tools.sandbox.errors import SandboxError


def test_without_bubblewrap_nothing_is_made_up(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SandboxError) as caught:
        mounts.protected({})
    said = str(caught.value)
    assert not missing(said, "apt-get install bubblewrap", "SANDBOX=process")


def test_data_is_named_by_its_last_part_and_must_be_there(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder / "tables").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a" / "tables")
    paths = mounts.data_paths([tmp_path / "link", str(tmp_path / "a" / "tables"), tmp_path / "b"])
    assert paths == {
        (tmp_path / "a" / "tables").resolve(): "/data/tables",
        (tmp_path / "b").resolve(): "/data/b",
    }
    with pytest.raises(SandboxError, match=str(tmp_path / "c")):
        mounts.data_paths([tmp_path / "c"])
    both = [tmp_path / folder / "tables" for folder in ("a", "b")]
    with pytest.raises(SandboxError, match=rf"{both[0]}, {both[1]}"):
        mounts.data_paths(both)
