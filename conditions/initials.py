"""Abbreviations in a diagnosis: which words their letters stand for.

spelt_out("AP (acute pancreatitis)")                          # "acute pancreatitis "
without_initials("cerebral venous thrombosis (CVT)", [])      # "cerebral venous thrombosis "
"""

import re
from collections.abc import Sequence

from conditions.diagnosis_words import TABLE, known_words, plain, words_of

# An abbreviation (CoA, SSc) behind its name, and one before it, perhaps behind an adjective
GLOSS = re.compile(r"(?<=\w)\s*[(（\[]\s*([A-Z](?:[A-Z]|[a-z](?=[A-Z])){1,5}[a-z]?)\s*[)）\]]")
SHORT_FIRST = re.compile(
    r"\s*((?:[A-Za-z]?[a-z]+ ){0,3})([A-Z][A-Za-z]{1,5})\b([^()（）]{0,20})"
    r"[(（]([^()（）]+)[)）]([^()（）]*)"
)
LONG = re.compile(r"(?<![\w-])[A-Z]{3,6}(?![\w-])")  # two letters stand for many things
SMALL = {*TABLE["said"]["small"], "with"}


def with_initials(said: str, names: Sequence[str]) -> str:
    """Return a text with a name for initials of all its words, unless a table has them."""

    def named(short: re.Match[str]) -> str:
        word = short[0].lower()
        for name in names if words_of(word).isdisjoint(known_words()) else ():
            # NHL: non-Hodgkin lymphoma is three words here, and one that is plain has two
            if any(_stands_for(word, one, whole=True) for one in (plain(name), name.lower())):
                return name
        return short[0]

    return LONG.sub(named, said)


def spelt_out(said: str) -> str:
    """Return a text with what an abbreviation stands for in its place."""
    short = SHORT_FIRST.fullmatch(said)
    if not short or short[4].isupper() or not _stands_for(short[2].lower(), plain(short[4])):
        return said
    return short[1] + short[4] + short[3] + short[5]


def without_initials(said: str, names: Sequence[str]) -> str:
    """Return a text without initials in parentheses of the words before them, or of a name."""

    def without(gloss: re.Match[str]) -> str:
        word = plain(gloss[1])
        known = not words_of(word).isdisjoint(known_words())
        named = map(plain, (said[: gloss.start()], *names))
        return gloss[0] if known or not any(_stands_for(word, name) for name in named) else " "

    return GLOSS.sub(without, said)


def _stands_for(word: str, name: str, whole: bool = False) -> bool:
    # The initials of the name's last words, and besides only their letters in order: OHSS for
    # hyperstimulation. Those of all its words, three and more, without others but behind an o:
    # ABPA for bronchopulmonary, but no OCPD for compulsive
    parts = re.findall(r"\w+", name)
    if whole and len({*parts} - SMALL) < 3:
        return False
    ends = {len(word)}  # where what stands for the words behind may begin
    for part in reversed(parts):
        starts = set[int]()
        for end in ends:
            for start in range(end + 1):
                letters = word[start:end]
                in_order = iter(re.sub("(?<=[^o]).", "", part) if whole else part)
                first = part in SMALL or letters[:1] == part[0]
                if first and all(letter in in_order for letter in letters):
                    starts.add(start)
        ends = starts
        if len(part) > 1 and 0 in ends and not whole:
            return True
    return whole and 0 in ends
