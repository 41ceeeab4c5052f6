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
    """A link by its own: the files of a Hugging Face snapshot are links to blobs."""
    for folder in ("a", "b"):
        (tmp_path / folder / "tables").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "a" / "tables")
    assert mounts.data_paths([link, str(tmp_path / "b")]) == {
        link: "/data/link",
        tmp_path / "b": "/data/b",
    }
    with pytest.raises(SandboxError, match=str(tmp_path / "c")):
        mounts.data_paths([tmp_path / "c"])
    both = [tmp_path / folder / "tables" for folder in ("a", "b")]
    with pytest.raises(SandboxError, match=rf"{both[0]}, {both[1]}"):
        mounts.data_paths(both)
