"""Forms of a Chinese or English text in which what says the same is written the same."""

import re
import unicodedata
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

UNSEEN = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_NOT_WORD = re.compile(r"[\W_](?:(?<!\.)|(?<!\d\.)|(?!\d))")
_WIDE = {wide: unicodedata.normalize("NFKC", wide) for wide in "，：；！？（）～℃％"}


def normalise(text: str) -> str:
    """Return the text in NFKC form and lower case, without white space and invisible signs."""
    return "".join(narrow(UNSEEN.sub("", text)).lower().split())


def narrow(text: str) -> str:
    """Return the text in NFKC form. Wide signs are replaced first, which makes the check quick."""
    for wide, narrow in _WIDE.items():
        text = text.replace(wide, narrow)
    return unicodedata.normalize("NFKC", text)


@lru_cache(maxsize=8192)
def words_only(text: str) -> str:
    """Return the normalised text's letters, digits, Chinese characters and decimal points."""
    return _NOT_WORD.sub("", normalise(text))


def simplified(text: str) -> str:
    """Return a text with simplified characters. One without Chinese loads no tables for it."""
    if text.isascii():
        return text
    return str(_opencc().convert(text.encode("utf-8", "replace").decode()))  # no half surrogates


@cache
def _opencc() -> Any:
    return import_module("opencc").OpenCC("t2s")


def stands_in(words: str, text: str) -> bool:
    """Return whether a text has the words, not inside a number: 15 is not in 150毫克."""
    before = r"(?<![\d.])" if words[:1].isdecimal() else ""
    behind = r"(?![\d.])" if words[-1:].isdecimal() else ""
    return re.search(f"{before}{re.escape(words)}{behind}", text) is not None
