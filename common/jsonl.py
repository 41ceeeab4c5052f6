"""JSONL files: read lazily, with errors that name the line, and written completely or not at all."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from common.files import FileError, refuse_existing, replacing

SHOWN = 80  # characters of a bad line in a message


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number (from 1) and the object of each line that is not blank.
    Raises FileError: no such file, not UTF-8, or a line that is not a JSON object.
    """
    try:
        with open(path, "rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, _object(line, f"{path}, line {number}")
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from None


def rows_with_texts(paths: Iterable[Path], texts: Iterable[str]) -> list[dict[str, Any]]:
    """Return the rows of files, each with a text that is not blank in the columns `texts`.
    Raises FileError: see read_jsonl, or a row lacks such a text, or there are no rows.
    """
    rows = []
    for path in paths:
        for number, row in read_jsonl(path):
            for name in texts:
                if not isinstance(row.get(name), str) or not row[name].strip():
                    has = ", ".join(row) if name not in row else repr(row[name])
                    where = f"{path}, line {number}"
                    raise FileError(f"{where}: expected text in {name!r}, got {has[:SHOWN]}")
            rows.append(row)
    if not rows:
        raise FileError(f"{', '.join(map(str, paths))}: no rows")
    return rows


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of ours, {} if it does not exist. Raises FileError: spoilt."""
    return own_object(path.read_bytes(), str(path)) if path.exists() else {}


def own_object(text: bytes, where: str) -> dict[str, Any]:
    """Return a JSON object that this project wrote. Raises FileError: it is torn, or was edited."""
    found = None
    with suppress(ValueError, RecursionError):
        found = json.loads(text)
    if not isinstance(found, dict):
        shown = text[:SHOWN].decode("utf-8", "replace")
        raise FileError(f"{where}: expected a JSON object, got {shown!r}; mend or remove it")
    return found


class NewLines:
    """The complete lines added to a JSONL file since the last look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = path.stat().st_size if path.exists() else 0

    def look(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._read)
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole + end)
        return [json.loads(line) for line in whole.split(b"\n") if line.strip()]


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        text = line.decode("utf-8-sig")
        row = json.loads(text, object_pairs_hook=_once)
        if b"\\u" in line:
            # An escaped half of a surrogate pair cannot be written again
            json.dumps(row, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise FileError(f"{where}: not UTF-8; convert the file to UTF-8") from None
    except UnicodeEncodeError:
        raise FileError(f"{where}: half of a surrogate pair is no character; remove it") from None
    except (ValueError, RecursionError) as error:
        raise FileError(f"{where}: not JSON ({error}): {text[:SHOWN]!r}") from None
    if not isinstance(row, dict):
        raise FileError(f"{where}: expected a JSON object, got {text[:SHOWN].strip()!r}")
    return row


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    for key, value in pairs if len(found) < len(pairs) else ():
        if found[key] != value:  # the last would stand for both
            raise ValueError(f"{key!r} is twice in an object, expected once")
    return found


def write_jsonl(path: Path, rows: Iterable[Any], force: bool) -> int:
    """Write JSON values and return how many.
    Raises FileError: the file exists and not `force`, or a row has a date or bytes.
    """
    refuse_existing(path, force)
    count = 0
    with replacing(path) as draft, open(draft, "w", encoding="utf-8") as file:
        for row in rows:
            try:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            except TypeError as error:
                raise FileError(f"{path}, row {count + 1}: {error}; make it text") from None
            count += 1
    return count


def write_text(path: Path, text: str, force: bool) -> None:
    """Write a text in the same way. Raises FileError if the file exists and not `force`."""
    refuse_existing(path, force)
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
