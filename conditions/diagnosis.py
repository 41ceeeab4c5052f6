"""Whether a diagnosis is the gold one, by one of its names and nothing else: for every agent that
diagnoses.

names_it("Likely acute appendicitis.", ["acute appendicitis", "appendicitis"])      # True
names_it("appendicitis or cholecystitis", ["acute appendicitis", "appendicitis"])   # False: a list names none
names_it("Chronic appendicitis", ["acute appendicitis", "appendicitis"])            # False: another one

Read like a clinician reads it, by rules of grammar: what is said holds all words of a name, in any
order and spelling, and besides only words that leave a diagnosis what it is (`diagnosis.toml`).
Where the names have an acuity, side, type or stage, another one is wrong; where they have none, an
added one is right unless the tables have that as another condition. What follows "with" or "due to"
may be anything but another condition of the tables.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from conditions.diagnosis_words import (
    HAN,
    LEADING_CODE,
    TABLE,
    Words,
    beside,
    conditions,
    organs,
    words_of,
)
from conditions.framing import unframed

LONGEST = 200  # characters of a diagnosis
OWN_NAMES = 2  # of a condition, in English and Chinese; all others are aliases
GAP = r"[ _*·-]{0,3}"  # between the letters of a name that is written apart; a comma or a new line is none
NUMBER = re.compile(r"(type|stage|grade|class|phase)\d[a-c]?")
PARTS = re.compile(r"[;；\n]")
JOINED = re.compile(r"[;；\n、,，+&]|\band\b|" + "|".join(TABLE["said"]["clause"]), re.I)
CLAUSE = re.compile(
    "|".join(rf"\b{one}\b" if one.isascii() else one for one in TABLE["said"]["clause"]), re.I
)
UNDECIDED = re.compile("|".join(TABLE["said"]["undecided"]), re.I)
NOTHING = re.compile("|".join(TABLE["said"]["nothing"]), re.I)


def names_it(said: str, names: Iterable[str]) -> bool:
    """Return whether the words are the diagnosis that has these names, and no other one beside it.

    A gold of several parts, joined by ";", needs all of them, in any order and nothing else.
    """
    known = [name for name in names if name.strip()]
    said = unframed(unicodedata.normalize("NFKC", said))
    if not known or len(said) > LONGEST or _undecided(said, known):
        return False
    said, known = _without_a_common_code(NOTHING.sub(" ", said), known)
    several = [parts for name in known if len(parts := _parts(name)) > 1]
    return _names_one(said, known) or any(_names_all(said, parts) for parts in several)


def _without_a_common_code(said: str, names: list[str]) -> tuple[str, list[str]]:
    """Return both without the ICD code with which the words and a name begin."""
    code = LEADING_CODE.match(said)
    if not code:
        return said, names
    bare = []
    for name in names:
        own = LEADING_CODE.match(name)
        same = own is not None and own[1].lower() == code[1].lower()
        bare.append(name[own.end() :] if own and same else name)
    return (said if bare == names else said[code.end() :]), bare


def _undecided(said: str, names: list[str]) -> bool:
    """Return whether the words leave the diagnosis undecided. Words of a name do not count, such as
    "status" in "status epilepticus".
    """
    beside_names = re.sub("|".join(map(re.escape, names)), " ", said, flags=re.I)
    return bool(UNDECIDED.search(NOTHING.sub(" ", beside_names)))


def _parts(name: str) -> list[str]:
    return [part for part in PARTS.split(name) if words_of(part)]


def _names_all(said: str, parts: list[str]) -> bool:
    """Return whether the words, cut into single things, name each part and nothing else."""
    things = [thing for thing in JOINED.split(said) if words_of(thing)]
    found = [[part for part in parts if _names_one(thing, [part])] for thing in things]
    stated = {part for one in found for part in one}
    return stated == {*parts} and all(
        one or words_of(thing) <= beside() for one, thing in zip(found, things, strict=True)
    )


def _names_one(said: str, names: list[str]) -> bool:
    gold = _gold(tuple(names))
    if any(_is(words, gold) for words in _readings(said, gold)):
        return True
    clause = CLAUSE.search(said)
    if not clause or any(CLAUSE.search(name) for name in gold.names):
        return False
    behind = words_of(said[clause.end() :])
    before = _readings(said[: clause.start()], gold)
    return any(_is(words, gold) for words in before) and not _others(behind, gold)


def _readings(said: str, gold: Gold) -> tuple[Words, Words]:
    """Return the words of a text twice: unchanged, and with a Chinese name cut out of its
    neighbours.
    """
    chinese = [re.escape(name) for name in gold.names if HAN.search(name)]
    longest = "|".join(sorted(chinese, key=len, reverse=True))
    cut = re.sub(longest, lambda m: f" {m[0]} ", said) if chinese else said
    return words_of(said), words_of(cut)


class Gold(NamedTuple):
    """A diagnosis: its names, the words of each, and the names of other conditions of the tables in
    words.
    """

    names: tuple[str, ...]
    readings: tuple[Words, ...]
    others: tuple[Words, ...]


@lru_cache(maxsize=1024)
def _gold(names: tuple[str, ...]) -> Gold:
    """Return the gold diagnosis with all names that the tables have for the same condition."""
    given = {words_of(name) for name in names}
    own = [one for one in conditions() if given & {words_of(name) for name in one[:2]}]
    alike = [one for one in conditions() if given & {words_of(name) for name in one}]
    every = tuple(dict.fromkeys((*names, *(name for one in own for name in one))))
    readings = {words for name in every if (words := words_of(name))}
    others = {words_of(name) for one in conditions() if one not in alike for name in one}
    return Gold(every, tuple(readings), tuple(others - readings))


def _is(words: Words, gold: Gold) -> bool:
    """Return whether the words are names of the diagnosis, with only words beside them that do not
    change it.
    """
    stated = {word for name in gold.readings if name <= words for word in name}
    beyond = words - stated
    own = any(words_of(name) <= words for name in gold.names[:OWN_NAMES])
    return (
        bool(stated)
        and (own or not beyond & organs())
        and all(word in beside() or NUMBER.fullmatch(word) for word in beyond)
        and not any(_contradicts(word, gold) for word in beyond)
        and not _others(words, gold)
    )


def _contradicts(word: str, gold: Gold) -> bool:
    """Return whether a word is of a kind of which the names of the diagnosis have another word."""
    named = {other for name in gold.readings for other in name}
    number = NUMBER.fullmatch(word)
    if number:
        kinds = {found[1] for other in named if (found := NUMBER.fullmatch(other))}
        return number[1] in kinds
    kind = next((words for words in TABLE["one_of"].values() if word in words), ())
    return any(other in named and other != word for other in kind)


def _others(words: Words, gold: Gold) -> bool:
    """Return whether the words contain a name of another condition of the tables that is not part
    of a name of this one.
    """
    return any(
        other <= words and not any(other <= name and name <= words for name in gold.readings)
        for other in gold.others
    )


def mention(names: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds one of the names in a text, also spaced out or in American
    spelling; English names match whole words only.
    """
    return re.compile(
        "|".join(filter(None, map(_apart, sorted(names, key=len, reverse=True)))) or r"(?!)", re.I
    )


def _apart(name: str) -> str:
    letters = [re.escape(letter) for letter in re.findall(r"[^\W_]", name)]
    if not (letters and name.isascii()):
        return GAP.join(letters)
    american = re.findall(".", re.sub("[ao]e", "e", "".join(letters).lower()))
    return rf"(?<![a-z]){GAP.join('[ao]?e' if letter == 'e' else letter for letter in american)}(?![a-z])"
