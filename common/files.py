"""Write outputs that appear complete or not at all, and replace nothing without --force."""

import fcntl
import glob
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from common.command import UsageError


class FileError(UsageError):
    """An input cannot be read, or an output must not be overwritten."""


def refuse_existing(path: Path, force: bool) -> None:
    """Raise FileError if `path` exists without `force`, is a folder, or would be below a file."""
    if path.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file")
    place = next(place for place in path.parents if os.path.exists(place))
    if not place.is_dir():
        raise FileError(f"{path} cannot be written: {place} is no folder")
    if path.exists() and not force:
        raise FileError(f"{path} exists; give another output, or --force to replace it")


def refuse_inputs(outputs: Iterable[Path | None], inputs: Iterable[Path]) -> None:
    """Raise FileError if an output, which may be None, is also an input."""
    read = {path.resolve() for path in inputs}
    for file in outputs:
        if file and file.resolve() in read:
            raise FileError(f"{file} is an input and would be an output; give another --output")


# Room for sockets, logs and what Ray spills; Ray stops where a disk is 95 % full.
TEMPORARY_BYTES = 200_000_000


def check_temporary() -> Path:
    """Return the folder for temporary files, as Ray chooses it. Raises FileError: full, missing."""
    setting = "RAY_TMPDIR" if os.environ.get("RAY_TMPDIR") else "TMPDIR"
    folder = Path(os.environ.get(setting) or "/tmp")
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise FileError(f"{folder}, for temporary files: {error.strerror}; set {setting}") from None
    if free < TEMPORARY_BYTES:
        raise FileError(
            f"{folder}, for temporary files, is full: {free / 1e6:.0f} MB free, needed "
            f"{TEMPORARY_BYTES / 1e6:.0f}; remove files there, or name another folder with {setting}"
        )
    return folder


def check_writable(folder: Path, setting: str) -> None:
    """Raise FileError if nothing can be written in `folder`, which `setting` chooses."""
    # os.path.exists is false where Path.exists raises: below a folder that may not be entered
    place = next(place for place in (folder, *folder.parents) if os.path.exists(place))
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"written")
            file.flush()
    except OSError as error:
        raise FileError(
            f"{folder} cannot be written ({place}: {error.strerror}); give another with {setting}"
        ) from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write a file or make a folder at. It replaces `path` at the end of the block.

    Folders above it are made, and drafts that a killed program left are removed. An exception
    leaves what was there. Call `refuse_existing` first to decide whether `path` may be replaced.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.????????.tmp"):
        with suppress(OSError, FileError), locked(left) as sure:
            # One that was just made may not be locked yet
            if sure and time.time() - left.stat().st_mtime > 60:
                shutil.rmtree(left)
    made = tempfile.TemporaryDirectory(".tmp", f".{path.name}.", path.parent)
    with made as folder, locked(Path(folder)):
        draft = Path(folder) / path.name
        yield draft
        if draft.is_file():
            with open(draft, "rb") as file:
                os.fsync(file.fileno())
        elif path.is_dir():
            os.replace(path, Path(folder) / "before")
        os.replace(draft, path)


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold a folder's lock; yield whether its disk has locks. Raises FileError: another has it."""
    place = os.open(folder, os.O_RDONLY)
    sure = True
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(place)
        raise FileError(f"another command works in {folder}; wait for it, or stop it") from None
    except OSError:
        sure = False
    try:
        yield sure
    finally:
        os.close(place)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of the file's bytes. Raises FileError if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from None


def read_only_uri(path: Path) -> str:
    """Return SQLite's address of a file that is only read, whatever signs its path has."""
    return f"file:{quote(str(path))}?mode=ro"
