"""Forms of a Chinese or English text that change no meaning, so that what says the same is written
the same.

    canonical("每次０．５克，每天兩次")      # "每次500毫克,每天2次"
    words_only("避光, 密封。")              # "避光密封"

OpenCC writes traditional characters as simplified ones; numbers are those of
`scoring.numerals`, dates of `scoring.dates`, and units of `scoring.units`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from scoring.dates import dates_in_one_form
from scoring.numerals import english_in_digits, in_digits
from scoring.units import in_units

UNSEEN = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
MARKUP = re.compile(r"</?[a-zA-Z][^<>]{0,400}>|&(?:nbsp|lt|gt|amp);|\*|#|`")
LIST_MARK = re.compile(
    r"(?m)^[ \t>]*(?:\d{1,2}[.、)）](?!\d)|[-•+][ \t])|(?<=[。;；:：])[ \t]*\d{1,2}[.、)）](?!\d)"
    r"|[（(]\d{1,2}[)）]|[①-⑳]"
)
# Patterns begin with the signs they match and look back afterwards: `re` then skips all other
# signs.
_ALWAYS = r"""[;!?、。·()\[\]{}"“”‘《》【】「」『』\n|…]"""
SEPARATOR = re.compile(
    rf"[.,:'’/—\ {_ALWAYS[1:]}(?:(?<={_ALWAYS})|(?<=[.,:])(?:(?<!\d.)|(?!\d))|(?<=['’])(?:(?<![a-z0-9].)|(?![a-z]))"
    r"|(?<=—)—*|(?<=/)(?:(?<![0-9a-z].)|(?![0-9a-z]))|(?<= )- )"
)
"""What stands between the pieces of a text; a point or a comma inside a number does not."""

_NOT_WORD = re.compile(r"[\W_](?:(?<!\.)|(?<!\d\.)|(?!\d))")
_NUMBER = re.compile(r"\d{1,30}(?:\.\d{1,30})?")
_SUPERSCRIPT = re.compile("(10)([⁰¹²³⁴⁵⁶⁷⁸⁹]+)")  # NFKC makes 109 of 10⁹
_TIMES_TEN = re.compile(r"(?<=\d) ?[*xX] ?(?=10(?:\^|[⁰¹²³⁴⁵⁶⁷⁸⁹]))")
_MIXED_NUMBER = re.compile("([0-9０-９]) ?(?=[½⅓⅔¼¾⅕⅛])")
_SIGNS = str.maketrans("⁄∕∶≧≦", "//:≥≤")
_GAPS = re.compile(r"[ \t\u3000]+")
_CHINESE_GAP = re.compile(r" (?<=[一-鿿] )(?=[一-鿿])")
_NEEDLESS_GAP = re.compile(r" (?:(?<=[^\x00-\x7f] )|(?=[^\x00-\x7f])|(?<=\d )(?=[a-z%~]))")
_WIDE = {wide: unicodedata.normalize("NFKC", wide) for wide in "，：；！？（）～℃％"}


def normalise(text: str) -> str:
    """Return the text in NFKC form and lower case, without white space and invisible signs.

    "１５ ｍｇ" and "15mg" become equal.
    """
    return "".join(_narrow(UNSEEN.sub("", text)).lower().split())


def _narrow(text: str) -> str:
    """Return the text in NFKC form. The usual wide signs are replaced first: most texts are then in
    that form already, which is quick to check.
    """
    for wide, narrow in _WIDE.items():
        text = text.replace(wide, narrow)
    return unicodedata.normalize("NFKC", text)


@lru_cache(maxsize=8192)
def words_only(text: str) -> str:
    """Return the normalised text's letters, digits and Chinese characters; "" if it has none."""
    return _NOT_WORD.sub("", normalise(text))


@lru_cache(maxsize=8192)
def numbers(text: str) -> frozenset[float]:
    """Return the set of numbers written in digits."""
    return frozenset(map(float, _NUMBER.findall(normalise(text))))


def fragments(text: str) -> list[str]:
    """Return the text's parts between punctuation, as words only; each can be right or wrong by
    itself.
    """
    parts = map(words_only, SEPARATOR.split(_narrow(text)))
    return [part for part in parts if part]


@lru_cache(maxsize=8192)
def canonical(text: str) -> str:
    """Return the text with one form of characters, numbers and units, without markup and list
    marks; punctuation stays.
    """
    return _NEEDLESS_GAP.sub("", in_units(with_digits(text)))  # units are Chinese now


@lru_cache(maxsize=1024)
def with_digits(text: str) -> str:
    """Return the canonical text, but with its quantities as they are written."""
    text = _SUPERSCRIPT.sub(r"\1^\2", _TIMES_TEN.sub("×", text))
    text = MARKUP.sub("", LIST_MARK.sub("", UNSEEN.sub("", text)))
    text = simplified(text)
    text = _MIXED_NUMBER.sub(r"\1又", text)
    text = _narrow(text).lower().translate(_SIGNS)
    text = _CHINESE_GAP.sub(",", _GAPS.sub(" ", text))
    text = _NEEDLESS_GAP.sub("", english_in_digits(text))
    return dates_in_one_form(in_digits(text.replace("−", "-").replace("–", "-")))


def simplified(text: str) -> str:
    """Return the text with traditional Chinese characters in their simplified form."""
    return str(_opencc().convert(text.encode("utf-8", "replace").decode()))  # no half surrogates


@cache
def _opencc() -> Any:
    """Return OpenCC's converter, which is started at the first call."""
    return import_module("opencc").OpenCC("t2s")
