"""One form of a text's characters, numbers, dates and units, so that what says the same is written
the same.

    canonical("每次０．５克，每天兩次")      # "每次500毫克,每天2次"

OpenCC writes traditional characters as simplified ones; numbers are those of `numerals`, dates of
`dates`, and units of `units`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from scoring.text import UNSEEN, narrow, simplified
from sql_agent.judge.dates import dates_in_one_form
from sql_agent.judge.numerals import english_in_digits, in_digits
from sql_agent.judge.units import in_units

MARKUP = re.compile(r"</?[a-zA-Z][^<>]{0,400}>|&(?:nbsp|lt|gt|amp);|\*|#|`")
LIST_MARK = re.compile(
    r"(?m)^[ \t>]*(?:\d{1,2}[.、)）](?!\d)|[-•+][ \t])|(?<=[。;；:：])[ \t]*\d{1,2}[.、)）](?!\d)"
    r"|[（(]\d{1,2}[)）]|[①-⑳]"
)
_SUPERSCRIPT = re.compile("(10)([⁰¹²³⁴⁵⁶⁷⁸⁹]+)")  # NFKC makes 109 of 10⁹
_TIMES_TEN = re.compile(r"(?<=\d) ?[*xX] ?(?=10(?:\^|[⁰¹²³⁴⁵⁶⁷⁸⁹]))")
_MIXED_NUMBER = re.compile("([0-9０-９]) ?(?=[½⅓⅔¼¾⅕⅛])")
_SIGNS = str.maketrans("⁄∕∶≧≦", "//:≥≤")
_GAPS = re.compile(r"[ \t\u3000]+")
_CHINESE_GAP = re.compile(r" (?<=[一-鿿] )(?=[一-鿿])")
_NEEDLESS_GAP = re.compile(r" (?:(?<=[^\x00-\x7f] )|(?=[^\x00-\x7f])|(?<=\d )(?=[a-z%~]))")


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
    text = narrow(text).lower().translate(_SIGNS)
    text = _CHINESE_GAP.sub(",", _GAPS.sub(" ", text))
    text = _NEEDLESS_GAP.sub("", english_in_digits(text))
    return dates_in_one_form(in_digits(text.replace("−", "-").replace("–", "-")))
