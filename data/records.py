"""Rows of a file, and what all readers share: encodings and one-line errors."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from charset_normalizer import from_bytes

from common.command import UsageError

# Characters. A parser holds the events of a whole piece, which are many times its size
PIECE = 64 * 1024
MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
# What can only be UTF-8: no pairs of GBK or Big5 look like a run of Chinese. In a cell that is UTF-8
# throughout a few may look like a letter (女 is also Ů), but not like units and accents inside words
IN_CHINESE = re.compile("[\u4e00-\u9fff]{4}")
IN_CELL = re.compile("[\u4e00-\u9fff]{2}|[°µμ][A-Za-z]|[A-Za-z][ß-ÿ]+[A-Za-z]|[\u2010-\u203a]")
BETWEEN_CELLS = re.compile(b'[",;\t]')
# Read as CP1252 these are such as Â°, Ã© and â€™, which nobody writes
NOT_CP1252 = re.compile(
    "[\u00a0-\u00bf\u00df-\u017f\u0391-\u03c9\u0410-\u044f\u2000-\u2fff\u3000-\u303f\uff00-\uffef]"
    "|[\u00c0-\u00de][A-Za-z]|[\u4e00-\u9fff]{2}"
)
# What exports of hospitals are written in. Among all that charset-normalizer knows, a short text
# in GBK looks like Japanese or Korean.
GUESSED = ["gb18030", "big5", "cp1252"]
# Where the common characters stand in an encoding of Chinese: its name, and their first bytes
COMMON = {"gb18030": ("gb2312", 0xB0, 0xD7), "big5": ("big5", 0xA4, 0xC6)}
MOSTLY = 0.85  # of the Chinese characters of a text
CHINESE = re.compile("[\u4e00-\u9fff]")
GUESSED_WIDE = [*GUESSED, "utf_16_le", "utf_16_be"]


class Record(NamedTuple):
    """A row's number, and its values or reading problem."""

    number: int
    values: dict[str, Any]
    problem: str | None = None


class SourceError(UsageError):
    """A source cannot be read. The message names the file or URL and what was expected."""


@contextmanager
def refusing(what: str, kind: type[UsageError] = SourceError) -> Iterator[None]:
    """Turn any exception of a reader into a one-line error. Damaged files raise nearly anything."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        raise kind(f"{what}: {first_line(error)}") from None


def first_line(error: Exception) -> str:
    """Return the first line of an exception's text, for a database the driver's text."""
    return (str(getattr(error, "orig", None) or error).splitlines() or [type(error).__name__])[0]


def detect_encoding(path: Path) -> str:
    """Return the encoding of a text file: its mark's, UTF-8, or the likeliest of GUESSED.

    The whole file is decoded. Raises SourceError if no encoding fits: the message names the first
    line that does not fit, and an encoding that would fit it.
    """
    with path.open("rb") as file:
        start = file.read(PIECE)
    marked = next((name for mark, name in MARKS.items() if start.startswith(mark)), "")
    encoding = marked or "utf-8"
    wrong = _undecodable(path, encoding)
    if wrong is None:
        return encoding
    # Rows of UTF-16 have zeros, for their ends at least. A short text in GBK without one decodes too
    is_wide = b"\0" in start
    tried = GUESSED_WIDE if is_wide else GUESSED
    if not marked:
        telling = start if is_wide else _lines_not_ascii(path)
        found = _likeliest(telling, tried)
        other = _line_in_utf8(path, found)
        if other and not is_wide:
            raise SourceError(
                f"{path}: line {wrong} has what is not UTF-8, and line {other} what can only be "
                "UTF-8; save all of it in one encoding, or give --encoding where the command has it"
            )
        if found and _undecodable(path, found) is None:
            return found.replace("_", "-")
    raise SourceError(
        f"{path}, line {wrong}: not {encoding}, and the file as a whole is in none of the other "
        f"encodings tried ({', '.join(tried)}); save it in one encoding, "
        "or give --encoding where the command has it"
    )


def _likeliest(text: bytes, tried: list[str]) -> str:
    """Return the encoding in which a text makes sense, or "" without any.

    To charset-normalizer a Chinese text with many signs (50μg×10, ≥38℃) makes none, but its
    characters are common ones only in its own encoding.
    """
    guess = from_bytes(text, cp_isolation=tried).best()
    found = guess.encoding if guess else ""
    shares = {name: _share_of_common(text, name) for name in COMMON}
    best = max(shares, key=lambda name: shares[name])
    is_chinese = found in ("", *COMMON) and b"\0" not in text
    return best if is_chinese and shares[best] > max(MOSTLY, shares.get(found, 0)) else found


def _share_of_common(text: bytes, encoding: str) -> float:
    if not _is_in(encoding, text):
        return 0.0
    codec, first, last = COMMON[encoding]
    chinese = CHINESE.findall(text.decode(encoding)[:PIECE])  # a line may be the whole file
    starts = [char.encode(codec, "replace")[0] for char in chinese]
    return sum(first <= start <= last for start in starts) / max(1, len(chinese))


def _lines_not_ascii(path: Path) -> bytes:
    """Return the first of these lines, each whole: half a character fits no encoding."""
    found = b""
    with path.open("rb") as file:
        for line in file:
            found += b"" if line.isascii() else line
            if len(found) > PIECE:
                break
    return found


def _line_in_utf8(path: Path, guess: str) -> int | None:
    """Return the first line that must be UTF-8 because the guessed encoding reads other characters."""
    anywhere = NOT_CP1252 if guess == "cp1252" else IN_CHINESE
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if anywhere.search(line.decode("utf-8", "surrogateescape")):
                return number
            for cell in BETWEEN_CELLS.split(line):
                if _is_in("utf-8", cell) and IN_CELL.search(cell.decode("utf-8")):
                    return number
    return None


def _undecodable(path: Path, encoding: str) -> int | None:
    try:
        with path.open(encoding=encoding, newline="") as text:
            while text.read(PIECE):
                pass
        return None
    except UnicodeError:
        with path.open("rb") as file:
            numbered = enumerate(file, start=1)
            return next((number for number, line in numbered if not _is_in(encoding, line)), 1)


def _is_in(encoding: str, line: bytes) -> bool:
    try:
        line.decode(encoding)
    except UnicodeError:
        return False
    return True


def as_record(number: int, value: Any) -> Record:
    """Return a JSON value as a row. It must be an object."""
    if isinstance(value, dict):
        return Record(number, value)
    return Record(number, {}, f"a JSON {type(value).__name__}, expected an object")


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
