"""Abbreviations in a diagnosis: which words their letters stand for.

spelt_out("AP (acute pancreatitis)")                          # "acute pancreatitis "
without_initials("cerebral venous thrombosis (CVT)", [])      # "cerebral venous thrombosis "
"""

import re
from collections.abc import Sequence

from conditions.diagnosis_words import TABLE, known_words, plain, words_of

# An abbreviation behind a name that it stands for, and one before it
GLOSS = re.compile(r"(?<=\w)\s*[(（\[]\s*([A-Z](?:[A-Z]|[a-z](?=[A-Z])){1,5})\s*[)）\]]")  # CoA
SHORT_FIRST = re.compile(r"\s*([A-Z][A-Za-z]{1,5})\b([^()（）]{0,20})[(（]([^()（）]+)[)）]\s*")
LONG = re.compile(r"\b[A-Z]{4,6}\b")  # fewer letters stand for many things


def with_long_initials(said: str, names: Sequence[str]) -> str:
    """Return a text with a name for the initials of all its words, unless a table has them."""
    small = TABLE["said"]["small"]

    def named(short: re.Match[str]) -> str:
        word = short[0].lower()
        for name in names if words_of(word).isdisjoint(known_words()) else ():
            parts = [part for part in re.findall("[a-z]+", name.lower()) if part not in small]
            if word == "".join(part[0] for part in parts):
                return name
        return short[0]

    return LONG.sub(named, said)


def spelt_out(said: str) -> str:
    """Return a text with what an abbreviation stands for in its place."""
    short = SHORT_FIRST.fullmatch(said)
    return short[3] + short[2] if short and _stands_for(short[1].lower(), short[3]) else said


def without_initials(said: str, names: Sequence[str]) -> str:
    """Return a text without initials in parentheses of the words before them, or of a name."""

    def without(gloss: re.Match[str]) -> str:
        word = plain(gloss[1])
        known = words_of(word) != {word} or word in known_words()
        named = (said[: gloss.start()], *names)
        return gloss[0] if known or not any(_stands_for(word, name) for name in named) else " "

    return GLOSS.sub(without, said)


def _stands_for(word: str, name: str) -> bool:
    # The initials of the name's (last) words, and besides only their letters in order: OHSS for
    # hyperstimulation
    ends = {len(word)}  # where what stands for the words behind may begin
    for part in reversed(plain(name).split()):
        small = part in {*TABLE["said"]["small"], "with"}
        starts = set[int]()
        for end in ends:
            for start in range(end + 1):
                letters = word[start:end]
                in_order = iter(part)
                first = small or letters[:1] == part[0]
                if first and all(letter in in_order for letter in letters):
                    starts.add(start)
        ends = starts
        if len(part) > 1 and 0 in ends:
            return True
    return False
