"""Comparing Chinese and English medical text: normal form, fragments, numbers, and how closely a fragment is matched.

closeness("一次15毫克", "每次15毫克")     # 0.74: one character differs
closeness("一次15毫克", "一次20毫克")     # 0.0: the numbers differ
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from rapidfuzz import fuzz

# Bounded, so that no answer makes an infinite number or takes long.
NUMBER = re.compile(r"\d{1,30}(?:\.\d{1,30})?")
# Between two digits a dot or comma belongs to the number.
SEPARATOR = re.compile(r"(?<!\d)[.,:]|[.,:](?!\d)|[;!?、。·()\[\]{}\"'“”‘’《》【】\n]")
# A point between two digits stays: 1.5 is not 15.
NOT_WORD = re.compile(r"(?:[^\w.]|_|(?<!\d)\.|\.(?!\d))+")
# Signs nobody sees: soft hyphen, zero-width, and those that turn the direction of writing.
UNSEEN = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")

# Below this share of matching characters, what matches is what Chinese phrases have in common anyway.
CHANCE = 0.5
# The same for pairs of characters that stand anywhere: "胸痛持续" for "持续胸痛".
CHANCE_PAIRS = 0.3
# A near match never earns as much as the text itself.
NEAR = 0.9


def normalise(text: str) -> str:
    """The text in NFKC form, lower case, without white space and unseen signs: "１５ ｍｇ" and "15mg" become equal."""
    return "".join(unicodedata.normalize("NFKC", UNSEEN.sub("", text)).lower().split())


@lru_cache(maxsize=8192)
def words_only(text: str) -> str:
    """The normalised text's letters, digits and Chinese characters; "" when there are none."""
    return NOT_WORD.sub("", normalise(text))


@lru_cache(maxsize=8192)
def numbers(text: str) -> frozenset[float]:
    """The numbers written in digits, each once."""
    return frozenset(float(number) for number in NUMBER.findall(normalise(text)))


def fragments(text: str) -> list[str]:
    """The text's parts between punctuation, as words only: what can be right or wrong by itself."""
    parts = (words_only(part) for part in SEPARATOR.split(unicodedata.normalize("NFKC", text)))
    return [part for part in parts if part]


def closeness(fragment: str, text: str) -> float:
    """How well `text` contains `fragment`, in [0, 1]; both as words only.

    1 if it is contained, 0 if its numbers are missing, in between by the better of two shares: of its characters that
    match in one place (0 below one half), and of its characters whose pairs stand anywhere (0 below 0.3).
    """
    if not numbers(fragment) <= numbers(text):
        return 0.0
    if fragment in text:
        return 1.0
    window = (_best_window(fragment, text) - CHANCE) / (1 - CHANCE)
    pairs = (_paired(fragment, text) - CHANCE_PAIRS) / (1 - CHANCE_PAIRS)
    return NEAR * max(0.0, window, pairs)


def _paired(fragment: str, text: str) -> float:
    """The share of the fragment's characters that belong to a pair of neighbours which `text` has too."""
    found: set[int] = set()
    for i in range(len(fragment) - 1):
        if fragment[i : i + 2] in text:
            found |= {i, i + 1}
    return len(found) / len(fragment)


def _best_window(fragment: str, text: str) -> float:
    """The similarity in [0, 1] of `fragment` and the stretch of `text` most like it."""
    if len(text) < len(fragment):
        return fuzz.ratio(fragment, text) / 100
    match = fuzz.partial_ratio_alignment(fragment, text)
    if match is None or not numbers(fragment) <= numbers(text[match.dest_start : match.dest_end]):
        return 0.0
    return match.score / 100
