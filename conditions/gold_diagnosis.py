"""What a gold diagnosis means: its names with those that the tables add, and what follows from them.

gold_of(("acute appendicitis",)).words          # those of 急性阑尾炎 among them
"""

import re
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from conditions.causes import Link, links, parts_in
from conditions.diagnosis_words import (
    TABLE,
    Words,
    conditions,
    organs,
    organs_by_name,
    words_in,
    words_of,
)
from conditions.table import load_tables

NEVER = "(?!)"  # a pattern that nothing matches
WITHIN_DAYS = {"sudden", "hours", "days"}  # what only begins so is not chronic
OWN_NAMES = 2  # of a condition, in English and Chinese; all others are aliases
# What is acute although it does not say so: an inflammation, an attack, an artery closed
ACUTE = re.compile("(?:itis|炎)$|^(?:exacerbation|attack|stroke|infarction|embolism)$")
WHOSE = re.compile(r"\bin\b", re.I)  # cancer in cirrhosis comes of it


class Gold(NamedTuple):
    """A diagnosis: its names and what follows from them, in words."""

    outside: bool  # the tables lack it
    names: tuple[str, ...]
    readings: tuple[Words, ...]  # one of each name
    words: Words  # of all readings
    shorter: tuple[Words, ...]  # readings without an "acute" that may be left out
    own: Words  # of its own names, and "acute" where it always is
    elsewhere: Words  # organs in which it is not
    wider: Words  # of what it is a kind of
    others: tuple[Words, ...]  # names of other conditions
    parts: tuple[Words, ...]  # what it joins, if several
    links: tuple[Link, ...]  # its causes and effects
    other_causes: str  # that make another disease of it, as a pattern


@lru_cache(maxsize=1024)
def gold_of(names: tuple[str, ...]) -> Gold:
    """Return the diagnosis that has these names."""
    given = {words_of(name) for name in names}
    every = dict.fromkeys(names)
    others = set[Words]()
    outside = True
    for one in conditions():
        words = [words_of(name) for name in one]
        if given.intersection(words[:OWN_NAMES]):
            outside = False
            every.update(dict.fromkeys(one))
        if not given.intersection(words):
            others.update(words)
    readings = _readings_of([*every])
    shorter = set[Words]()
    if every.keys() == set(names):  # the tables, which name what is meant, do not have it
        shorter = {name - {"acute"} for name in readings if any(map(ACUTE.search, name))}
    places = organs()  # of what is not in the tables
    for name in readings:
        places = organs_by_name().get(name, places)
    causes = [
        several for name, several in TABLE["other_cause"].items() if words_of(name) in readings
    ]
    parts = [*map(words_of, chain.from_iterable(map(parts_in, names)))]
    own = words_in([*every][:OWN_NAMES])
    for condition in load_tables().conditions.values():
        is_it = {condition.en, *condition.aliases_en} <= set(names)
        if is_it and condition.facets["onset"].keys() <= WITHIN_DAYS:
            own |= {"acute"}
    return Gold(
        outside=outside,
        names=tuple(every),
        readings=tuple(readings),
        words=frozenset[str]().union(*readings),
        shorter=tuple(shorter),
        own=own,
        elsewhere=organs() - places,
        wider=_wider_than(readings),
        others=tuple(others - readings),
        parts=tuple(parts) if len(parts) > len(names) else (),
        links=tuple(chain.from_iterable(links(WHOSE.sub("due to", name)) for name in every)),
        other_causes="|".join(causes) or NEVER,
    )


def _readings_of(names: list[str]) -> set[Words]:
    """Return the words of each name, and of each narrower name that answers to it."""
    found = {*map(words_of, names), *map(words_in, map(parts_in, names))} - {frozenset()}
    found |= {name - {"childhood"} for name in found if len(name) > 1}
    for general, several in TABLE["narrower"].items():
        wide = words_of(general)
        for name in [name for name in found if wide <= name]:
            for narrower in map(words_of, several):
                if name.isdisjoint(narrower - wide):  # a renal cell cancer is no squamous cell one
                    found.add((name - wide) | narrower)
    return found


def _wider_than(readings: set[Words]) -> Words:
    found = list[str]()
    for text, several in TABLE["wider"].items():
        if any(words_of(text) <= name for name in readings):
            found += several
    return words_in(found)
