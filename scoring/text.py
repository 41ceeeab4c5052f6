"""Forms of a Chinese or English text that change no meaning, so that what says the same is written
the same.

    words_only("避光, 密封。")              # "避光密封"
    simplified("頭暈")                     # "头晕"
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

UNSEEN = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_NOT_WORD = re.compile(r"[\W_](?:(?<!\.)|(?<!\d\.)|(?!\d))")
_NUMBER = re.compile(r"\d{1,30}(?:\.\d{1,30})?")
_WIDE = {wide: unicodedata.normalize("NFKC", wide) for wide in "，：；！？（）～℃％"}


def normalise(text: str) -> str:
    """Return the text in NFKC form and lower case, without white space and invisible signs.

    "１５ ｍｇ" and "15mg" become equal.
    """
    return "".join(narrow(UNSEEN.sub("", text)).lower().split())


def narrow(text: str) -> str:
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


def simplified(text: str) -> str:
    """Return the text with traditional Chinese characters in their simplified form."""
    return str(_opencc().convert(text.encode("utf-8", "replace").decode()))  # no half surrogates


@cache
def _opencc() -> Any:
    """Return OpenCC's converter, which is started at the first call."""
    return import_module("opencc").OpenCC("t2s")
