"""One value of a foreign table as the text the medical database stores, or the reason why it can not be stored.

from data.intake.cells import CellError, to_text
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

MAX_CHARACTERS = 1_000_000
# Control characters that have no place in text; PostgreSQL refuses the first of them.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
BLOCKS = frozenset({"p", "div", "br", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4", "h5", "h6", "section"})
UNSEEN = frozenset({"script", "style"})


class CellError(ValueError):
    """A value that can not be stored; the message says what was seen and what is expected."""


def to_text(value: Any, strip_html: bool = False) -> str | None:
    """The value as text without outer white space; None when there is nothing in it.

    Numbers are written without a needless `.0`, dates as ISO, lists of plain values joined by `、`. `strip_html`
    removes tags, entities and control characters.

    Raises:
        CellError: not text nor convertible without guessing, or text that a database refuses.
    """
    text = _convert(value)
    if text is None:
        return None
    if strip_html:
        text = CONTROL.sub("", _strip_html(text))
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip().strip("\ufeff").strip()
    found = CONTROL.search(text)
    if found:
        raise CellError(f"control character U+{ord(found[0]):04X}; --strip-html removes them")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CellError(f"half a surrogate pair U+{ord(text[error.start]):04X}, not a character") from None
    if len(text) > MAX_CHARACTERS:
        raise CellError(f"{len(text)} characters, at most {MAX_CHARACTERS} fit")
    return text or None


def _convert(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if value.bit_length() > 256:
            raise CellError("a number of more than 77 digits")
        return str(value)
    if isinstance(value, float | Decimal):
        return _number(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise CellError("bytes that are not UTF-8 text") from None
    if isinstance(value, list | tuple) and all(part is None or isinstance(part, str | int | float) for part in value):
        return "、".join(filter(None, map(to_text, value)))
    raise CellError(f"{type(value).__name__} value, expected text or a number")


def _number(value: float | Decimal) -> str | None:
    if value.is_nan() if isinstance(value, Decimal) else math.isnan(value):
        return None
    if math.isinf(value):
        raise CellError("infinite number")
    if -1e15 < value < 1e15 and value == int(value):
        return str(int(value))
    return str(value)


class _Words(HTMLParser):
    """Collects what a reader of the page would see; a block begins a new line."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.unseen += tag in UNSEEN
        if tag in BLOCKS:
            self.parts.append("\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in UNSEEN:
            self.unseen = max(0, self.unseen - 1)
        elif tag in BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.unseen:
            self.parts.append(data)


def _strip_html(text: str) -> str:
    if "<" not in text and "&" not in text:
        return text
    parser = _Words()
    try:
        parser.feed(text)
        parser.close()
    except (AssertionError, ValueError):
        raise CellError("HTML that can not be parsed") from None
    lines = (re.sub(r"[^\S\n]+", " ", line).strip() for line in "".join(parser.parts).split("\n"))
    return "\n".join(line for line in lines if line)
