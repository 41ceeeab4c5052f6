"""Abbreviations in a diagnosis: which words their letters stand for.

spelt_out("AP (acute pancreatitis)")                          # "acute pancreatitis "
without_initials("cerebral venous thrombosis (CVT)", [])      # "cerebral venous thrombosis "
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from conditions.diagnosis_words import TABLE, known_words, plain, words_of

# An abbreviation behind a name that it stands for, and one before it
GLOSS = re.compile(r"(?<=\w)\s*[(（\[]\s*([A-Z]{2,6})\s*[)）\]]")
SHORT_FIRST = re.compile(r"\s*([A-Z][A-Za-z]{1,5})\b([^()（）]{0,20})[(（]([^()（）]+)[)）]\s*")


def spelt_out(said: str) -> str:
    """Return a text with what an abbreviation stands for in its place."""
    short = SHORT_FIRST.fullmatch(said)
    return short[3] + short[2] if short and _stands_for(short[1].lower(), short[3]) else said


def without_initials(said: str, names: Sequence[str]) -> str:
    """Return a text without initials in parentheses of the words before them, or of a name."""
    return GLOSS.sub(lambda gloss: " " if _are_initials(gloss, names) else gloss[0], said)


def _are_initials(gloss: re.Match[str], names: Sequence[str]) -> bool:
    word = gloss[1].lower()
    if words_of(word) != {word} or word in known_words():
        return False
    return any(_stands_for(word, name) for name in (gloss.string[: gloss.start()], *names))


def _stands_for(word: str, name: str) -> bool:
    # The initials of the name's (last) words, and besides only their letters in order: OHSS for
    # hyperstimulation
    ends = {len(word)}  # where what stands for the words behind may begin
    for part in reversed(plain(name).split()):
        small = part in {*TABLE["said"]["small"], "with"}
        ends = {
            start
            for start in range(len(word) + 1)
            if any(_shortens(word[start:end], part, small) for end in ends if end >= start)
        }
        if len(part) > 1 and 0 in ends:
            return True
    return False


def _shortens(letters: str, part: str, small: bool) -> bool:
    rest = iter(part)
    return (small or letters[:1] == part[0]) and all(letter in rest for letter in letters)
