"""One value of a foreign table as the text to store, or why it cannot be stored."""

from __future__ import annotations

import html
import math
import re
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

CONTROL = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
# Control characters, of which PostgreSQL refuses the first, and halves of a surrogate pair, which
# are no characters.
REFUSED = re.compile(rf"[{CONTROL}\ud800-\udfff]")
AROUND = " \t\n\u3000\xa0\u200b\u200c\u200d\u2060\ufeff"  # white space, seen or not
# What exports write into an empty cell: databases, pandas, R, people
PLACEHOLDERS = frozenset(("null", r"\n", "nan", "none", "n/a", "#n/a", "<na>", "-", "--", "—", "/"))
# 2025/1/2, 2025.1.2, 2025-1-2, 2025年1月2日, with or without a time. ISO dates do not match.
DATE = re.compile(
    r"([0-9]{4})(?:[/.年]|-(?![0-9]{2}-[0-9]{2}))([0-9]{1,2})[-/.月]([0-9]{1,2})日?"
    r"(?: ([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?)?"
)
# Each pattern stops at the next "<" of its kind. Otherwise the time would grow with the square of
# the unclosed tags.
REST = r"""(?:"[^"<]*"|'[^'<]*'|[^'"<>])*+>"""
BLOCK = re.compile(rf"</?(?:p|div|br|li|ul|ol|tr|table|h[1-6]|section)\b{REST}", re.IGNORECASE)
TAG = re.compile(rf"<(?:/?[a-z]|[!?]){REST}", re.IGNORECASE)
UNSEEN = re.compile(
    rf"<!--((?!<!--).)*?-->|<(script|style)\b{REST}((?!<\2).)*?</\2\s*>", re.DOTALL | re.IGNORECASE
)
EXACT = 10**15  # a larger number of a spreadsheet has lost digits


class CellError(ValueError):
    """The value cannot be stored. The message says what was seen and expected."""


def to_text(value: Any, strip_html: bool = False) -> str | None:
    """Return the value as text without outer white space, or None if it is empty or a PLACEHOLDER.

    Numbers lose a needless `.0`. Lists are joined by `、`. Dates become ISO, without a time at
    midnight, which Excel adds. strip_html: remove tags, entities and control characters. Raises
    CellError: not convertible without guessing, or text that a database refuses.
    """
    text = _convert(value) or ""
    if strip_html:
        text = re.sub(f"[{CONTROL}]", "", _strip_html(text))
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip().strip(AROUND).strip()
    refused = REFUSED.search(text)
    if refused:
        seen = f"U+{ord(refused[0]):04X}, no character of a text"
        raise CellError(f"{seen}; --strip-html removes control characters")
    if not text or text.lower() in PLACEHOLDERS:
        return None
    date_in_words = DATE.fullmatch(text)
    if date_in_words:
        year, month, day, hour, minute, second = map(int, date_in_words.groups("0"))
        with suppress(ValueError):  # a 13th month
            return _moment(datetime(year, month, day, hour, minute, second))
    return text


def _moment(value: datetime) -> str:
    return str(value.date() if value.time() == time() else value)


def _convert(value: Any) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float() | Decimal():
            return _number(value)
        case datetime():
            return _moment(value)
        case date() | time():
            return value.isoformat()
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case list() | tuple() if all(
            part is None or isinstance(part, str | int | float) for part in value
        ):
            return "、".join(filter(None, map(to_text, value)))
        case CellError():  # a cell that its reader could not read
            raise value
    raise CellError(f"{type(value).__name__} value, expected text or a number")


def _number(value: float | Decimal) -> str | None:
    """Return a number without an exponent. Floats keep a spreadsheet's 15 digits."""
    if Decimal(value).is_nan():
        return None
    if math.isinf(value):
        raise CellError("infinite number")
    if isinstance(value, float):
        if abs(value) >= EXACT:
            raise CellError(f"{value} has lost its last digits; store it as text in the source")
        value = Decimal(f"{value:.15g}")
    whole = value.to_integral_value()
    return format(whole if value == whole else value, "f")


def _strip_html(text: str) -> str:
    if "<" not in text and "&" not in text:
        return text
    text = html.unescape(TAG.sub("", BLOCK.sub("\n", UNSEEN.sub("", text))))
    lines = (re.sub(r"[^\S\n]+", " ", line).strip() for line in text.split("\n"))
    return "\n".join(filter(None, lines))
