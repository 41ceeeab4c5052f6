"""Personal data in a question, replaced by its kind in brackets: 我叫张三，电话13800138000 ->
我叫[姓名]，电话[电话].

    masked, kinds = mask("我叫张三，电话13800138000")  # kinds: ["name", "phone"], one a replacement

Shared by the curation scripts. Kinds and patterns are in `personal_data.toml`. Digits are
understood in every script (full-width, Chinese, circled) and with spaces, hyphens, dots, commas or
brackets between them. In any case no run of eleven digits or more stays. Names are found by their
context (我叫..., 我老公..., ...医生), by the characters they are made of, and by jieba's tagger,
offline. The tagger also excludes words that are not names, and a table lists the medical words and
brands that look like one (高血压, 黄疸, 严迪).
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from common.word_lists import keep_private

CHINESE_DIGITS = dict(
    zip("〇零一二三四五六七八九幺壹贰叁肆伍陆柒捌玖", "001234567891123456789", strict=True)
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
GUESSED = "guessed"

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
KINDS = _TABLES["kinds"]
_PARTS = {name: "".join(text.split()) for name, text in _TABLES["parts"].items()}
_PARTS |= {name: "|".join(text.split()) for name, text in _TABLES["words"].items()}

Span = tuple[int, int]
Words = dict[int, tuple[int, str]]  # by its start: the end of a word and its part of speech


def _pattern(text: str) -> re.Pattern[str]:
    """Return a pattern of the table, with the named parts inserted, which may name others."""
    while (filled := re.sub(r"<(\w+)>", lambda part: _PARTS.get(part[1], part[0]), text)) != text:
        text = filled
    return re.compile(text)


PATTERNS = {kind: [_pattern(text) for text in table["patterns"]] for kind, table in KINDS.items()}
NAMES = {
    how: [_pattern(text) for text in KINDS["name"][how]] for how in ("patterns", "likely", "alone")
}
TAGGED_NAME = _pattern(KINDS["name"]["tagged"])
NO_PERSON = _pattern(KINDS["name"]["no_person"])
# A text without a surname has no name to tag
SURNAME = _pattern(
    "(?!<not_names>)(?:<compound>|(?![<rarely>])[<surnames>]<han>|[<rarely>]<usual>)"
)
NOT_NAMES = _pattern("<not_names>")
USUAL_NAME = _pattern("[<surnames>]<usual>{1,2}")


def visible(text: str) -> str:
    """Return the text without invisible characters, each run of white space as one space."""
    text = unicodedata.normalize("NFC", text)
    kept = (
        char
        for char in text
        if char.isspace() or unicodedata.category(char) not in UNSEEN_CATEGORIES
    )
    return " ".join("".join(kept).split())


def mask(text: str) -> tuple[str, list[str]]:
    """Return the visible text with every piece of personal data replaced, and the kind of each
    replacement.
    """
    text = visible(text)
    kinds = []
    for kind, table in KINDS.items():
        spans = _apart(_spans(kind, text))
        for start, end in reversed(spans):
            text = text[:start] + table["label"] + text[end:]
        kinds += [kind] * len(spans)
    return text, kinds


def _apart(spans: Iterator[Span]) -> list[Span]:
    """Return the spans in order, with overlapping ones joined and empty ones left out."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return joined


def _spans(kind: str, text: str) -> Iterator[Span]:
    """Yield the spans of personal data of a kind."""
    if kind == "name":
        yield from _names(text)
        return
    text = plain(
        "".join(CHINESE_DIGITS.get(char, char) for char in text)
        if KINDS[kind].get("numerals")
        else text
    )
    for pattern in PATTERNS[kind]:
        for match in pattern.finditer(text):
            start, end = match.span(1 if pattern.groups else 0)
            if kind == "address":
                before = BEFORE_ADDRESS.match(text, start, start + 12)
                start = before.end() if before else start
            if kind != "id_number" or _is_id_number(re.sub(r"[^0-9x]", "", match[1])):
                yield start, end


def _names(text: str) -> Iterator[Span]:
    words = _tagged(text) if SURNAME.search(text) else {}
    yield from _by_rule("patterns", text, {})
    yield from _by_rule("likely", text, words)
    yield from (span for span in _by_rule("alone", text, words) if span[0] in words)
    for start, (end, tag) in words.items():
        medical = NOT_NAMES.match(text, start) or NO_PERSON.match(text, end)
        if tag.startswith("nr") and TAGGED_NAME.fullmatch(text, start, end) and not medical:
            yield start, end


def _by_rule(how: str, text: str, words: Words) -> Iterator[Span]:
    """Yield names that patterns find, except those that begin a word of `words` that is
    not a name.
    """
    for pattern in NAMES[how]:
        place = 0
        while match := pattern.search(text, place):
            start, end = match.span("name")
            medical = NOT_NAMES.match(match["name"])
            word_end, tag = words.get(start, (start, ""))
            if not medical and (
                _may_be_name(text, start, word_end, tag) or not match["name"].isalpha()
            ):
                yield start, max(end, word_end)
            place = start + len(medical[0]) if medical else end


def _may_be_name(text: str, start: int, end: int, tag: str) -> bool:
    """Return whether a word of the tagger may be a name or begin one; the tagger takes some names
    for places or brands.
    """
    usual = (tag in ("ns", "nz") or end - start > 2) and USUAL_NAME.fullmatch(text, start, end)
    return end - start < 2 or tag.startswith("nr") or tag == GUESSED or bool(usual)


def _tagged(text: str) -> Words:
    """Return the words of the text. A word in no list that the tagger does not take for a name gets
    the part of speech GUESSED.
    """
    import jieba.posseg  # late: it takes most of a second

    jieba.setLogLevel("CRITICAL")
    keep_private(jieba.dt)
    words = {}
    end = 0
    for word, tag in jieba.posseg.cut(text):
        start = end
        end += len(word)
        listed = word in jieba.posseg.dt.word_tag_tab
        words[start] = end, tag if listed or tag.startswith("nr") else GUESSED
    return words


def plain(text: str) -> str:
    """Return the text of the same length in lower case, with digits and punctuation of every script
    in ASCII.
    """
    return "".join(map(_plain_character, text))


def _plain_character(char: str) -> str:
    digit = unicodedata.digit(char, None)
    if digit is not None:
        return str(digit)
    simple = unicodedata.normalize("NFKC", char).lower()
    return simple if len(simple) == 1 else char


def _is_id_number(digits: str) -> bool:
    """Return whether the digits have a birthday at an ID number's position, or are 18 characters
    with the right check digit.
    """
    return bool(BIRTHDAY.match(digits)) or (len(digits) == 18 and has_check_digit(digits))


def has_check_digit(number: str) -> bool:
    """Return whether the last of 18 characters is the check digit of GB 11643-1999."""
    total = sum(weight * int(digit) for weight, digit in zip(WEIGHTS, number, strict=False))
    return CHECK_DIGITS[total % 11] == number[17].lower()
