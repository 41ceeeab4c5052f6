"""Replaces personal data in a question by its kind in brackets.

    masked, kinds = mask("我叫张三，电话13800138000")  # "我叫[姓名]，电话[电话]", ["phone", "name"]

Numbers are found by form in every script. No run of eleven digits or more stays but the code of a
product behind its name (条形码, 追溯码, NDC). Names are found only by a label beside them (我叫...,
患者..., ...医生).
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from common.settings import ROOT
from common.toml import table_beside

CHINESE_DIGITS = str.maketrans(
    "〇零一二三四五六七八九幺壹贰叁肆伍陆柒捌玖", "001234567891123456789"
)
# Characters that are invisible or only mark another one: control, format, half, private,
# unassigned, combining.
UNSEEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Me"}
BEFORE_ADDRESS = re.compile(r".*(?:家?住[在址]?|地址[是为]?|位于|来自|搬到|寄到|[在到])")
WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)  # GB 11643-1999
CHECK_DIGITS = "10x98765432"
BIRTHDAY = re.compile(
    r"[1-9][0-9]{5}(?:(?:18|19|20)[0-9]{2}|[0-9]{2}(?=[0-9]{7}$))(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
)

_TABLES = table_beside(__file__)
_PARTS = {name: text.replace("\n", "") for name, text in _TABLES["parts"].items()}

Span = tuple[int, int]


def _pattern(text: str) -> re.Pattern[str]:
    while (filled := re.sub(r"<(\w+)>", lambda part: _PARTS.get(part[1], part[0]), text)) != text:
        text = filled
    return re.compile(text)


# Medical words that begin with a surname, from what data/medical.db is made of
_medical: set[str] = set()
for _table in ("diseases", "drugs"):
    _text = (ROOT / "data" / f"textbook_{_table}.tsv").read_text(encoding="utf-8")
    _medical.update(filter(_pattern("<surname>").match, re.findall("[一-龥]{2,}", _text)))
_PARTS["term"] = "|".join(sorted(_medical))
KINDS: dict[str, dict[str, Any]] = _TABLES["kinds"]
KEPT = _pattern(_TABLES["kept"]["pattern"])
PATTERNS = {kind: [_pattern(text) for text in table["patterns"]] for kind, table in KINDS.items()}


def mask(text: str) -> tuple[str, list[str]]:
    """Return the visible text with personal data replaced, and the kind of each replacement."""
    text = visible(text)
    kinds = []
    for kind, table in KINDS.items():
        spans = _apart(_spans(kind, text))
        for start, end in reversed(spans):
            text = text[:start] + table["label"] + text[end:]
        kinds += [kind] * len(spans)
    return text, kinds


def visible(text: str) -> str:
    """Return the text without invisible characters, each run of white space as one space."""
    kept = []
    for char in unicodedata.normalize("NFC", text):
        if char.isspace() or unicodedata.category(char) not in UNSEEN_CATEGORIES:
            kept.append(char)
    return " ".join("".join(kept).split())


def _apart(spans: Iterator[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return joined


def _spans(kind: str, text: str) -> Iterator[Span]:
    table = KINDS[kind]
    if table.get("numerals"):
        text = text.translate(CHINESE_DIGITS)
    if not table.get("as_written"):
        text = "".join(map(_plain_character, text))
    kept = [match.span(1) for match in KEPT.finditer(text)]
    for pattern in PATTERNS[kind]:
        for match in pattern.finditer(text):
            start, end = match.span(1 if pattern.groups else 0)
            if any(first <= start and end <= last for first, last in kept):
                continue
            if kind == "address":
                before = BEFORE_ADDRESS.match(text, start, start + 12)
                start = before.end() if before else start
            if kind == "id_number":
                digits = re.sub(r"[^0-9x]", "", match[1])
                if not (BIRTHDAY.match(digits) or has_check_digit(digits)):
                    continue
            yield start, end


def _plain_character(char: str) -> str:
    digit = unicodedata.digit(char, None)
    simple = unicodedata.normalize("NFKC", char).lower() if digit is None else str(digit)
    return simple if len(simple) == 1 else char


def has_check_digit(number: str) -> bool:
    """Return whether the last of 18 characters is the check digit of GB 11643-1999."""
    if len(number) != 18:
        return False
    total = sum(weight * int(digit) for weight, digit in zip(WEIGHTS, number, strict=False))
    return CHECK_DIGITS[total % 11] == number[17].lower()
