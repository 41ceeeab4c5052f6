"""Outputs that are there whole or not at all, and never replace what is there unasked.

refuse_existing(Path("table.parquet"), force=False)     # before the work
with replacing(Path("table.parquet")) as draft:         # a file or a folder, whichever the block makes of `draft`
    draft.write_bytes(...)
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.command import UsageError


class FileError(UsageError):
    """An input that cannot be read, or an output that must not be overwritten; one line that says what to do."""


def refuse_existing(path: Path, force: bool) -> None:
    """Raises FileError when `path` exists and not `force`, when it is a folder, or when its own folder is missing."""
    if path.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise FileError(f"{path} can not be written: there is no folder {path.parent}")
    if path.exists() and not force:
        raise FileError(f"{path} exists; give another output, or --force to replace it")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write a file or make a folder at; it takes the place of `path` at the end of the block.

    An exception leaves what was there. The draft lies in a hidden folder beside `path`, with whatever a library puts
    beside its file, and that folder goes in any case. Whether `path` may be replaced is for `refuse_existing` to say,
    before the work.
    """
    with tempfile.TemporaryDirectory(
        dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"
    ) as folder:
        draft = Path(folder) / path.name
        yield draft
        if draft.is_file():
            with open(draft, "rb") as file:
                os.fsync(file.fileno())
        elif path.is_dir():
            os.replace(path, Path(folder) / "before")
        os.replace(draft, path)


def file_digest(path: Path) -> str:
    """SHA-256 of the file's bytes, for a journal's fingerprint. Raises FileError when it can not be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"{path} can not be read: {error.strerror}") from None
