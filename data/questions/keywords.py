"""Words to search and count by, out of the database's own texts, each with the rows it finds.

A word is kept if it finds 1 to LARGEST rows, all of them rows that may be asked about: the answer can then name them.

    for word in search_words(catalogue, rng): word.text, word.hits
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from data.database.schema import NAME_COLUMN
from data.questions.entities import FILTERED, Catalogue, is_plain

LARGEST = 4  # names one answer can hold
LARGEST_COUNT = 20  # rows the tool shows, and the evidence of one count
SEARCHED = {"drugs_info": ("indication", "component"), "disease": ("complication",)}
COUNTED_ONLY = {"complication"}  # nobody is asked to name the diseases found
SHORTEST, LONGEST = 3, 12  # characters; the trigram index finds nothing shorter

FRAGMENT_END = re.compile(r"[\s\d\W_]+")
LEAD = re.compile(r"^(用于|适用于|治疗|预防|主治|可并发|并发|本品|主要成[分份]为?|每[片粒袋支]含?|含)+")
JOINT = re.compile(r"伴|引起的?|所致的?|导致的?|以及|或|及|和|等")
MODIFIER = re.compile(r"^(轻度|中度|重度|急性|慢性|反复|轻中度|中重度|继发性|原发性)")


@dataclass(frozen=True)
class SearchWord:
    """A text that `column` is searched for (`whole`: compared with), and key and cell of the rows found."""

    table: str
    column: str
    text: str
    hits: tuple[tuple[int, str], ...]
    whole: bool = False


def parts_of(text: str) -> list[str]:
    """Words of a field text that a person might search for, shorter ones first."""
    found: dict[str, None] = {}
    for fragment in FRAGMENT_END.split(text):
        fragment = LEAD.sub("", fragment)
        for part in (*JOINT.split(fragment), fragment):
            found.update(dict.fromkeys((MODIFIER.sub("", part), part)))
    return sorted((part for part in found if SHORTEST <= len(part) <= LONGEST), key=len)


def search_words(catalogue: Catalogue, rng: random.Random) -> Iterator[SearchWord]:
    """At most one word for each text of a searched column, in random order, no word twice."""
    for table, columns in SEARCHED.items():
        for column in columns:
            largest = LARGEST_COUNT if column in COUNTED_ONLY else LARGEST
            yield from _words(catalogue, table, column, largest, rng)


def _words(catalogue: Catalogue, table: str, column: str, largest: int, rng: random.Random) -> Iterator[SearchWord]:
    keys = [entity.row_id for entity in catalogue.entities if entity.table == table]
    rng.shuffle(keys)
    seen: set[str] = set()
    for _, text in catalogue.texts(table, column, keys):
        for part in parts_of(text):
            if part in seen:
                break
            seen.add(part)
            word = word_for(catalogue, table, column, part, largest)
            if word:
                yield word
                break


def word_for(catalogue: Catalogue, table: str, column: str, text: str, largest: int) -> SearchWord | None:
    """The word with its rows; None if it finds none, more than `largest`, or one that may not be asked about."""
    if not is_plain(text):
        return None
    hits = catalogue.find(table, column, text, largest)
    if not 1 <= len(hits) <= largest or not all(key in catalogue.askable[table] for key, _ in hits):
        return None
    titles = [catalogue.titles[table][key] for key, _ in hits]
    if len(set(titles)) < len(titles) or not all(map(is_plain, titles)):
        return None
    return SearchWord(table, column, text, tuple(hits))


def disease_words(catalogue: Catalogue) -> Iterator[SearchWord]:
    """Each disease asked about that 1 to LARGEST drugs name in their indication."""
    for entity in catalogue.entities:
        if entity.table == "disease":
            word = word_for(catalogue, "drugs_info", "indication", entity.name, LARGEST)
            if word:
                yield word


def filter_values(catalogue: Catalogue) -> Iterator[SearchWord]:
    """Each value of a filtered column that 1 to LARGEST_COUNT rows have."""
    for table, columns in FILTERED.items():
        for column in columns:
            for value, keys in catalogue.values.get((table, column), {}).items():
                if len(keys) <= LARGEST_COUNT:
                    yield SearchWord(table, column, value, tuple((key, value) for key in keys), whole=True)


def names_of(word: SearchWord, catalogue: Catalogue) -> list[str]:
    """The names of the rows found, by key."""
    return [catalogue.titles[word.table][key] for key, _ in word.hits]


class Mentions:
    """Finds names of the database in a text: what a question or an answer names, whether it was asked about or not."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_start: dict[str, dict[int, set[str]]] = {}
        for name in names:
            if len(name) > 1:
                self._by_start.setdefault(name[:2], {}).setdefault(len(name), set()).add(name)

    @classmethod
    def of(cls, catalogue: Catalogue) -> Mentions:
        """All names of both tables."""
        return cls(name for table in NAME_COLUMN for name in catalogue.names[table])

    def find(self, text: str) -> list[str]:
        """Every name the text contains, in order, each once; names of one character are not looked for."""
        found: dict[str, None] = {}
        for at in range(len(text) - 1):
            for length, names in self._by_start.get(text[at : at + 2], {}).items():
                if text[at : at + length] in names:
                    found[text[at : at + length]] = None
        return list(found)
