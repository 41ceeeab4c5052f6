"""Comparing Chinese and English medical text: normal form, fragments, numbers, and how closely a fragment is matched.

closeness("一次15毫克", "每次15毫克")     # 0.74: one character differs
closeness("一次15毫克", "一次20毫克")     # 0.0: the numbers differ
"""

from __future__ import annotations

import re
import unicodedata

from rapidfuzz import fuzz

NUMBER = re.compile(r"\d+(?:\.\d+)?")
# Between two digits a dot or comma belongs to the number.
SEPARATOR = re.compile(r"(?<!\d)[.,:]|[.,:](?!\d)|[;!?、。·()\[\]{}\"'“”‘’《》【】\n]")
NOT_WORD = re.compile(r"[\W_]+")

# Below this share of matching characters, what matches is what Chinese phrases have in common anyway.
CHANCE = 0.5
# A near match never earns as much as the text itself.
NEAR = 0.9


def normalise(text: str) -> str:
    """The text in NFKC form, lower case, without white space: "１５ ｍｇ" and "15mg" become equal."""
    return "".join(unicodedata.normalize("NFKC", text).lower().split())


def words_only(text: str) -> str:
    """The normalised text's letters, digits and Chinese characters; "" when there are none."""
    return NOT_WORD.sub("", normalise(text))


def numbers(text: str) -> frozenset[float]:
    """The numbers written in digits, each once."""
    return frozenset(float(number) for number in NUMBER.findall(normalise(text)))


def fragments(text: str) -> list[str]:
    """The text's parts between punctuation, as words only: what can be right or wrong by itself."""
    parts = (words_only(part) for part in SEPARATOR.split(unicodedata.normalize("NFKC", text)))
    return [part for part in parts if part]


def closeness(fragment: str, text: str) -> float:
    """How well `text` contains `fragment`, in [0, 1]; both as words only.

    1 if it is contained, 0 if its numbers are missing or fewer than half of its characters match in one place, in
    between by the share of matching characters.
    """
    if not numbers(fragment) <= numbers(text):
        return 0.0
    if fragment in text:
        return 1.0
    return NEAR * max(0.0, (_best_window(fragment, text) - CHANCE) / (1 - CHANCE))


def _best_window(fragment: str, text: str) -> float:
    """The similarity in [0, 1] of `fragment` and the stretch of `text` most like it."""
    if len(text) < len(fragment):
        return fuzz.ratio(fragment, text) / 100
    match = fuzz.partial_ratio_alignment(fragment, text)
    if match is None or not numbers(fragment) <= numbers(text[match.dest_start : match.dest_end]):
        return 0.0
    return match.score / 100
