"""Words to search and count by, out of the database's own texts, each with the rows it finds.

A word is kept if it finds 1 to LARGEST rows, all of them rows that may be asked about: the answer can then name them.

    for word in search_words(catalogue, rng): word.text, word.keys
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from data.questions.entities import SHORTEST_KEYWORD, Catalogue, is_plain

LARGEST = 4  # names one answer can hold
LARGEST_COUNT = 20  # rows the tool shows, and the evidence of one count
BY_WORD = (("drugs_info", "indication"), ("drugs_info", "component"), ("disease", "complication"))
BY_VALUE = (("drugs_info", "company_name"),)
COUNTED_ONLY = {"complication"}  # nobody is asked to name the diseases found
LONGEST = 12  # characters

FRAGMENT_END = re.compile(r"[\s\d\W_]+")
LEAD = re.compile(r"^(用于|适用于|治疗|预防|主治|可并发|并发|本品|主要成[分份]为?|每[片粒袋支]含?|含)+")
JOINT = re.compile(r"伴|引起的?|所致的?|导致的?|以及|或|及|和|等")
MODIFIER = re.compile(r"^(轻度|中度|重度|急性|慢性|反复|轻中度|中重度|继发性|原发性)")


@dataclass(frozen=True)
class SearchWord:
    """A text that `column` is searched for (`whole`: compared with), and the keys of the rows found."""

    table: str
    column: str
    text: str
    keys: tuple[int, ...]
    whole: bool = False


def parts_of(text: str) -> list[str]:
    """Words of a field text that a person might search for, shorter ones first."""
    found: dict[str, None] = {}
    for fragment in FRAGMENT_END.split(text):
        fragment = LEAD.sub("", fragment)
        for part in (*JOINT.split(fragment), fragment):
            found.update(dict.fromkeys((MODIFIER.sub("", part), part)))
    return sorted((part for part in found if SHORTEST_KEYWORD <= len(part) <= LONGEST), key=len)


def search_words(catalogue: Catalogue, rng: random.Random) -> Iterator[SearchWord]:
    """At most one word for each text of a searched column, in random order, no word twice."""
    for table, column in BY_WORD:
        keys = [entity.row_id for entity in catalogue.entities if entity.table == table]
        rng.shuffle(keys)
        texts = catalogue.texts.get((table, column), {})
        seen: set[str] = set()
        for key in keys:
            for part in parts_of(texts.get(key, "")):
                if part in seen:
                    break
                seen.add(part)
                if word := word_for(catalogue, table, column, part):
                    yield word
                    break


def word_for(catalogue: Catalogue, table: str, column: str, text: str) -> SearchWord | None:
    """The word with its rows; None if it finds none, too many, or one that may not be asked about."""
    if not is_plain(text):
        return None
    largest = LARGEST_COUNT if column in COUNTED_ONLY else LARGEST
    keys = catalogue.find(table, column, text, largest)
    if not 1 <= len(keys) <= largest or not catalogue.askable[table].issuperset(keys):
        return None
    names = [catalogue.titles[table][key] for key in keys]
    if len(set(names)) < len(names) or not all(map(is_plain, names)):
        return None
    return SearchWord(table, column, text, tuple(keys))


def disease_words(catalogue: Catalogue) -> Iterator[SearchWord]:
    """Each disease asked about that 1 to LARGEST drugs name in their indication."""
    diseases = (entity.name for entity in catalogue.entities if entity.table == "disease")
    words = (word_for(catalogue, "drugs_info", "indication", name) for name in diseases)
    return (word for word in words if word)


def filter_values(catalogue: Catalogue) -> Iterator[SearchWord]:
    """Each plain value that 1 to LARGEST_COUNT rows have, all of which may be asked about."""
    for table, column in BY_VALUE:
        keys_of: dict[str, list[int]] = {}
        for key, value in catalogue.texts.get((table, column), {}).items():
            keys_of.setdefault(value, []).append(key)
        for value, keys in keys_of.items():
            if is_plain(value) and len(keys) <= LARGEST_COUNT and catalogue.askable[table].issuperset(keys):
                yield SearchWord(table, column, value, tuple(keys), whole=True)


def names_of(word: SearchWord, catalogue: Catalogue) -> list[str]:
    """The names of the rows found, by key."""
    return [catalogue.titles[word.table][key] for key in word.keys]


class Mentions:
    """Finds names of the database in a text: what a question or an answer names, whether it was asked about or not."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_start: dict[str, dict[int, set[str]]] = {}
        for name in names:
            if len(name) > 1:
                self._by_start.setdefault(name[:2], {}).setdefault(len(name), set()).add(name)

    def find(self, text: str) -> list[str]:
        """Every name the text contains, in order, each once; names of one character are not looked for."""
        found: dict[str, None] = {}
        for at in range(len(text) - 1):
            for length, names in self._by_start.get(text[at : at + 2], {}).items():
                if text[at : at + length] in names:
                    found[text[at : at + length]] = None
        return list(found)
