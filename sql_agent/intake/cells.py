"""One value of a foreign table as the text to store, or why it cannot be stored."""

import html
import math
import re
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

CONTROL = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
# Control characters, of which PostgreSQL refuses the first, and halves of a surrogate pair
REFUSED = re.compile(rf"[{CONTROL}\ud800-\udfff]")
CHINESE = re.compile("[\u4e00-\u9fff]")
# Characters without a width or a place of their own, which make two equal names differ
UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]")
# What exports write into an empty cell (databases, pandas, R), MySQL's empty date, and lines that
# people and tables in text draw
PLACEHOLDER = re.compile(
    r"(?i:[(<\[]?(?:null|nan|none|undefined|\\n|#?n/a)[)>\]]?)|<NA>|NA"
    r"|0000-00-00(?: 00:00:00(?:\.0+)?)?|[-‐-―−_/\\.…·]+|[?？]|[-+|:]*--[-+|:]*|[*=~]{3,}"
)
# Short cells that lost what they meant before they came here, and what the message says
LOST = {
    r"#(?:DIV/0!|REF!|VALUE!|NAME\?|NUM!|NULL!|SPILL!|CALC!|##+)": (
        "is what a spreadsheet shows for a formula that failed or a column too narrow"
    ),
    r"[0-9](?:\.[0-9]+)?[Ee]\+[0-9]{2,3}": (
        "has lost its last digits; store it as text in the source"
    ),
    r"\?{2,}": "has lost its characters; export it again as UTF-8",
    r"同上|同前|[〃″]|(?i:ditto)": "stands for the cell above; write that out",
}
SHORT = 32  # characters
SHOWN = 40  # characters of a cell in a message
# How exports keep a spreadsheet from reading a number or a formula: ="0690", '0690, '=1.
# An apostrophe with a partner is a quote: '5-氟尿嘧啶'.
AS_TEXT = re.compile(r"""="([^"]*)"|'([0-9=+@-][^']*)""")
# 2025/1/2, 2025.1.2, 2025-1-2, 2025年1月2日, with or without a time. ISO dates do not match.
DATE = re.compile(
    r"([0-9]{4})(?:[/.年]|-(?![0-9]{2}-[0-9]{2}))([0-9]{1,2})[-/.月]([0-9]{1,2})日?"
    r"(?: ([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?)?"
)
# Each pattern stops at the next "<" of its kind. Otherwise the time would grow with the square of
# the unclosed tags.
REST = r"""(?:"[^"<]*"|'[^'<]*'|[^'"<>])*+>"""
BLOCK = re.compile(rf"</?(?:p|div|br|li|ul|ol|tr|table|h[1-6]|section)\b{REST}", re.IGNORECASE)
ELEMENTS = (
    "a|abbr|acronym|address|area|article|aside|audio|b|bdi|bdo|big|blockquote|body|br|button|canvas"
    "|caption|center|cite|code|col|colgroup|dd|del|details|dfn|div|dl|dt|em|embed|fieldset"
    "|figcaption|figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd"
    "|label|legend|li|link|main|map|mark|meta|nav|nobr|object|ol|optgroup|option|p|param|picture"
    "|pre|q|rp|rt|ruby|s|samp|section|select|small|source|span|strike|strong|style|sub|summary|sup"
    "|svg|table|tbody|td|textarea|tfoot|th|thead|time|title|tr|track|tt|u|ul|var|video|wbr"
)
# Another name is a tag with nothing but attributes in quotes. ALT<ULN且AST>3 has no tag
NAMED = r"""/?[a-z][a-z0-9:._-]*(?:\s+[a-z0-9:._-]+\s*=\s*(?:"[^"<]*+"|'[^'<]*+'))*+\s*/?>"""
TAG = re.compile(rf"<(?:(?:/?(?:{ELEMENTS})(?=[\s/>])|[!?]){REST}|{NAMED})", re.IGNORECASE)
RAISED = re.compile(r"(?<=[0-9])<sup>(?=[-−–+]?[0-9])", re.IGNORECASE)  # 10<sup>9</sup> is not 109
HIDDEN = re.compile(
    rf"<!--((?!<!--).)*?-->|<(script|style)\b{REST}((?!<\2).)*?</\2\s*>", re.DOTALL | re.IGNORECASE
)
EXACT = 10**15  # a larger number of a spreadsheet has lost digits


class CellError(ValueError):
    """The value cannot be stored. The message says what was seen and expected."""


class Title(str):
    """The text of a cell over several columns that is alone in its row."""


def to_text(value: Any, strip_html: bool = False) -> str | None:
    """Return the value as visible text without outer white space, or None for a PLACEHOLDER.

    Numbers lose a needless `.0`. Lists are joined by `、`. Dates become ISO, without a time at
    midnight, which Excel adds. strip_html: remove tags, entities and control characters. Raises
    CellError: not convertible without guessing, or text that a database refuses.
    """
    text = _convert(value) or ""
    if strip_html:
        text = re.sub(f"[{CONTROL}]", "", _strip_html(text))
    text = UNSEEN.sub("", text).replace("\r\n", "\n").replace("\r", "\n").strip()
    marked = AS_TEXT.fullmatch(text) if text.startswith(("=", "'")) else None
    if marked:
        text = (marked[1] or marked[2] or "").strip()
    if refused := REFUSED.search(text):
        seen = f"U+{ord(refused[0]):04X}, no character of a text"
        raise CellError(f"{seen}; --strip-html removes control characters")
    if len(text) <= SHORT:
        if not text or PLACEHOLDER.fullmatch(text):
            return None
        for form, why in LOST.items():
            if re.fullmatch(form, text):
                raise CellError(f"{text} {why}")
    if why := _misread(text):
        raise CellError(f"{text[:SHOWN]} {why}")
    if in_words := DATE.fullmatch(text):
        year, month, day, hour, minute, second = map(int, in_words.groups("0"))
        with suppress(ValueError):  # a 13th month
            return _moment(datetime(year, month, day, hour, minute, second))
    return text


def readable(value: Any) -> str:
    """Return a value as text, "" for one that cannot be stored."""
    try:
        return to_text(value) or ""
    except CellError:
        return ""


def _misread(text: str) -> str:
    """Return how the encoding of a text was read wrongly, or ""."""
    if "\ufffd" in text or "锟斤拷" in text:
        return "has lost characters in an encoding; export it again as UTF-8"
    if text.isascii() or CHINESE.search(text):
        return ""
    for encoding in ("cp1252", "latin-1"):
        with suppress(UnicodeError):
            if CHINESE.search(text.encode(encoding).decode("utf-8")):
                return "is UTF-8 that was read as Latin; export it again as UTF-8"
    return ""


def _moment(value: datetime) -> str:
    return str(value.date() if value.time() == time() else value)


def _convert(value: Any) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return str(value).lower()
        case int() | UUID() | IPv4Address() | IPv6Address():
            return str(value)
        case float() | Decimal():
            return _number(value)
        case datetime():
            return _moment(value)
        case date() | time():
            return value.isoformat()
        case set() if all(isinstance(part, str) for part in value):
            return "、".join(sorted(value))  # a SET of MySQL
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case list() | tuple() if all(
            part is None or isinstance(part, str | int | float | dict) for part in value
        ):
            return "、".join(filter(None, map(_listed, value)))
        case CellError():  # a cell that its reader could not read
            raise value
    raise CellError(f"{type(value).__name__} value, expected text or a number")


def _listed(part: Any) -> str | None:
    """Return an item of a list: {"name": "甲", "strength": "1 mg"} is 甲 1 mg."""
    if not isinstance(part, dict):
        return to_text(part)
    return " ".join(filter(None, map(to_text, part.values())))


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
    text = BLOCK.sub("\n", HIDDEN.sub("", RAISED.sub("^", text)))
    text = html.unescape(TAG.sub("", text))
    lines = (re.sub(r"[^\S\n]+", " ", line).strip() for line in text.split("\n"))
    return "\n".join(filter(None, lines))
