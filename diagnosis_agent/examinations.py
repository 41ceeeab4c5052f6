"""Which examination an order means: by name, synonym, one of its numbers, or a spelling next to one of these.

    named("Complete Blood Count (CBC)")      # "complete blood count"
    named("CT scan of the abdomn")           # "abdominal CT"
    named("CBC and CRP")                     # None: several in one order are none

Everything goes by the English names of data/conditions/examinations.toml, or, where these do not know it, by the name
that a case's own record has.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache

from data.conditions.table import load_tables

LONGEST = 120  # characters of an order that are listened to
SHORT = 4  # a word of fewer letters, or with a digit, is spelt right or another one: CT and MRI, T3 and T4
LONG = 12  # a word of so many letters may have two mistakes, a shorter one has one
NOISE = {
    *(
        "a",
        "an",
        "the",
        "of",
        "for",
        "and",
        "with",
        "by",
        "on",
        "to",
        "please",
        "order",
        "obtain",
        "perform",
        "repeat",
    ),
    *(
        "urgent",
        "routine",
        "test",
        "testing",
        "scan",
        "study",
        "level",
        "levels",
        "measurement",
        "serum",
    ),
    *("bedside", "contrast", "diagnostic", "left", "plain", "right"),
}
LETTER = re.compile(r"\b([a-z])(?:-(?=[a-z])| (?=ray|dimer|reactive))")  # x-ray, D dimer: one word

Words = tuple[str, ...]  # of a name, in alphabetical order
Index = Mapping[Words, str]


def named(text: str, own: Iterable[str] = ()) -> str | None:
    """The examination that a text orders, by its name in the tables or among `own`; None: there is none."""
    if len(text) > LONGEST:
        return None
    outside, _, inside = text.partition("(")
    readings = [words for part in (text, outside, inside) if (words := _words(part))]
    indices = (_index_of({name: [name] for name in own}), _tables())
    found = (
        find(words, index) for find in (_exact, _nearest) for index in indices for words in readings
    )
    return next((name for name in found if name), None)


@cache
def table_key(name: str) -> str | None:
    """The key in data/conditions/examinations.toml of an English name."""
    return next((key for key, one in load_tables().examinations.items() if one.en == name), None)


def _exact(words: Words, index: Index) -> str | None:
    return index.get(words)


def _nearest(words: Words, index: Index) -> str | None:
    """The one examination with a name of which each word is spelt next to one of these; None: none, or several."""
    names = {
        name for other, name in index.items() if len(other) == len(words) and _alike(words, other)
    }
    return names.pop() if len(names) == 1 else None


def _alike(words: Words, others: Words) -> bool:
    from rapidfuzz.distance import OSA

    def same(one: str, other: str) -> bool:
        length = min(len(one), len(other))
        most = 0 if length < SHORT or not one.isalpha() else 1 if length < LONG else 2
        return OSA.distance(one, other, score_cutoff=most) <= most

    left = list(others)
    for word in words:
        match = next((other for other in left if same(word, other)), None)
        if match is None:
            return False
        left.remove(match)
    return True


@cache
def _tables() -> Index:
    """Every name; and what a number of one examination alone is called, where nothing else is."""
    every = load_tables().examinations.values()
    parts = [
        (_words(text), one.en)
        for one in every
        for part in one.parts.values()
        for text in (part.en, part.zh)
    ]
    homes = {words: {name for other, name in parts if other == words} for words, _ in parts}
    alone = {words: names.pop() for words, names in homes.items() if len(names) == 1}
    return alone | _index_of(
        {one.en: (one.en, *one.aliases_en, one.zh, *one.aliases_zh) for one in every}
    )


def _index_of(names: Mapping[str, Iterable[str]]) -> dict[Words, str]:
    return {_words(text): name for name, texts in names.items() for text in texts}


def _words(text: str) -> Words:
    """The words that say something, in one spelling and in alphabetical order; () for none."""
    plain = unicodedata.normalize("NFKC", text).lower()
    words = [_word(word) for word in re.findall(r"[^\W_]+", LETTER.sub(r"\1", plain))]
    return tuple(sorted([word for word in words if word not in NOISE] or words))


def _word(word: str) -> str:
    """British spelling, plurals and the ways to say "examination" and "-gram" as one."""
    word = re.sub("[ao]e", "e", word)
    word = re.sub("(?<=[a-z]{3})graph(y|s|ies)?$", "gram", word)
    word = {"examination": "exam", "examinations": "exam", "exams": "exam"}.get(word, word)
    return (
        word[:-1]
        if len(word) > SHORT and word.endswith("s") and not word.endswith(("ss", "is", "us"))
        else word
    )
