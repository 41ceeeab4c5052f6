"""What a doctor's question asks for, found by the ask-words of conditions/phrases.toml.

    asked_for("恶心多久了？", "肚子疼")      # ["onset"]

Chinese and English ask-words are found, the longest at each place, or else the wording nearest to
the question. In a sentence that names a facet, symptoms only say what the facet is of. Content
words decide, never small ones, and a sentence that does not ask, such as advice, asks for nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product
from math import fsum
from pathlib import Path
from typing import NamedTuple

from conditions.condition_types import Facet, Phrase
from conditions.table import load_tables

ALIKE, TELLING = (
    0.3,
    1.5,
)  # of a wording, and in pieces that no other item has: what a question must share with it
SENTENCE = re.compile(r"[^?？!！。；;\n]+[?？]?")
CHOICE = re.compile(r"([^\W\d_a-z]{1,2})[不没]\1")  # 疼不疼
PIECE = re.compile(r"(?=([\u4e00-\u9fff]{2}|(?<![a-z])[a-z]{4,5}))")
SAID = tomllib.loads(Path(__file__).with_name("said.toml").read_text(encoding="utf-8"))
ASKING, ADVICE, TAG, EXAMPLE, CLAUSE, ITSELF, OPENING, MORE = (
    re.compile("|".join(SAID["heard"][name]))
    for name in ("asking", "advice", "tag", "example", "clause", "itself", "opening", "more")
)
HAN_RUN = re.compile(r"[\u4e00-\u9fff]+")
ENGLISH = re.compile(r"[a-z]+")
STEM = 5
SIDES = frozenset(SAID["heard"]["sides"])
SMALL_CHINESE = re.compile(SAID["small"]["chinese"])
SMALL_ENGLISH = frozenset(SAID["small"]["english"].split())


def asks_whether(question: str, complaint: str) -> bool:
    """Return whether a question, or its last clause, asks for a complaint and for nothing else, so
    that no other word has content.
    """
    asking = [one for one in SENTENCE.findall(TAG.sub("", question.lower())) if asks(one)]
    texts = [plain(text) for one in asking[-1:] for text in (one, re.split("[，,]", one)[-1])]
    words = [parts for word in SAID["complaints"][complaint] for parts in readings(word)]
    return any(_nothing_but(parts, text) for text in texts for parts in words)


def opens(question: str) -> bool:
    """Return whether a question is one that a consultation opens with, such as "What brings you
    in?", and asks for nothing else.
    """
    text = plain(TAG.sub("", question))
    return bool(OPENING.search(text)) and not (
        MORE.search(text) or content_of(OPENING.sub(" ", text))
    )


def _nothing_but(parts: tuple[str, ...], text: str) -> bool:
    """Return whether a text has these parts in order, and otherwise only small words."""
    if not _pattern(parts).search(text):
        return False
    for part in parts:
        text = _pattern((part,)).sub(" ", text, count=1)
    return not content_of(text)


def content_of(text: str) -> set[str]:
    """Return the words of a text that have content: English ones by their beginning, Chinese ones
    by pairs of characters.
    """
    text = plain(text)
    english = {word[:STEM] for word in ENGLISH.findall(text) if word not in SMALL_ENGLISH}
    runs = HAN_RUN.findall(SMALL_CHINESE.sub(" ", text))
    return english | {run[at : at + 2] for run in runs for at in range(max(1, len(run) - 1))}


def asked_for(question: str, complaint: str) -> list[str]:
    """Return what a question asks for, in order: names of facets, symptoms, "age", "sex" and
    "accompanying".
    """
    asking = [one for one in SENTENCE.findall(TAG.sub("", question.lower())) if asks(one)]
    found = [item for sentence in asking for item in _asked_in(sentence, plain(complaint))]
    return list(dict.fromkeys(found)) or [
        item for sentence in asking[-1:] for item in _nearest(sentence)
    ]


def parts_of(question: str) -> list[str]:
    """Return the sentences of a question that ask, and of one with several clauses that ask for something
    by themselves, these; the question itself where it is not several. A side, such as how long,
    that follows another thing is no part: it is asked of that thing.
    """
    sentences = [one for one in SENTENCE.findall(TAG.sub("", question.lower())) if asks(one)]
    parts = list[tuple[str, tuple[str, ...]]]()
    for sentence in sentences:
        clauses = [one for one in CLAUSE.split(EXAMPLE.sub("", sentence)) if one and one.strip()]
        asking = [(one, named) for one in clauses if (named := _asked_by_itself(one))]
        parts += asking if len(asking) > 1 else [(sentence, _asked_by_itself(sentence))]
    kept = [
        part
        for number, (part, named) in enumerate(parts)
        if not number or {*named} - SIDES or ITSELF.search(plain(part)) or {*parts[0][1]} <= SIDES
    ]
    return [part if asks(part) else f"{part}?" for part in kept] if len(kept) > 1 else [question]


def _asked_by_itself(clause: str) -> tuple[str, ...]:
    """Return what an asking clause names."""
    if not ASKING.search(clause) or ADVICE.search(clause):
        return ()
    return tuple(word.item for _, word in named_in(plain(clause)) if not word.weak)


def asks(sentence: str) -> bool:
    return sentence.endswith(("?", "？")) or bool(
        ASKING.search(sentence) and not ADVICE.search(sentence)
    )


def _asked_in(sentence: str, complaint: str) -> list[str]:
    """Return what a sentence asks for.

    Some words count only if nothing else is left: examples, words before the first clause that
    asks, and words that the complaint has too, which say what the question is about.
    """
    clauses = re.split("(?<=[，,：:])", EXAMPLE.sub("", sentence))
    first = next((number for number, clause in enumerate(clauses) if ASKING.search(clause)), 0)
    before = len(plain("".join(clauses[:first])))
    named = named_in(plain("".join(clauses))) or named_in(plain(sentence))
    words = [word for end, word in named if end > before] or [word for _, word in named]
    words = [word for word in words if not all(part in complaint for part in word.parts)] or words
    items = [word.item for word in words if not word.weak] or [word.item for word in words]
    symptoms = [item for item in items if item in load_tables().symptoms]
    return (
        [item for item in items if item not in symptoms and item != "accompanying"]
        or symptoms
        or items
    )


def plain(text: str) -> str:
    """Return a text in the spelling of the ask-words: 疼不疼 and 疼痛 are 疼."""
    return CHOICE.sub(r"\1", text.lower()).replace("疼痛", "疼").replace("痛", "疼")


class AskWord(NamedTuple):
    """One reading of an ask-word: its parts in their order; whether it counts only where nothing
    else is named.
    """

    parts: tuple[str, ...]
    item: str
    weak: bool


def _surest_first(match: tuple[AskWord, int, int]) -> tuple[bool, int, int, int, int]:
    word, start, end = match
    return word.weak, -len("".join(word.parts)), end - start, start, end


def named_in(sentence: str) -> list[tuple[int, AskWord]]:
    """Return the ask-words of a sentence in order, each with the place where it ends.

    Of two that overlap the one that is not weak counts, then the longer one, then the one with less
    between its parts.
    """
    here = {part for part in _ask_words() if part in sentence}
    found = list[tuple[int, int, AskWord]]()
    left = sentence
    words = [word for part in here for word in _ask_words()[part] if here.issuperset(word.parts)]
    matches = [
        (word, *match.span()) for word in words for match in _pattern(word.parts).finditer(sentence)
    ]
    for word, start, end in sorted(matches, key=_surest_first):
        if "\0" not in left[start:end]:
            left = left[:start] + "\0" * (end - start) + left[end:]
            found.append((start, end, word))
    return [(end, word) for _, end, word in sorted(found)]


@cache
def _pattern(parts: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that finds the parts in order. An English part must not be inside another
    word, such as "age" in "manage", but may have an ending.
    """
    if all(part.isascii() for part in parts):
        return re.compile(
            ".{0,30}?".join(
                rf"(?<![a-z]){re.escape(one)}(?:s|es|d|ed|ing)?(?![a-z])" for one in parts
            )
        )
    return re.compile(".{0,12}?".join(map(re.escape, parts)))


@cache
def _ask_words() -> dict[str, list[AskWord]]:
    """Return every reading of every ask-word by its first part; the other parts are keys, too."""
    asks = [
        (item, word) for item, thing in _things().items() for word in (*thing.ask, *thing.ask_en)
    ]
    words = [
        AskWord(parts, item, word.startswith("~"))
        for item, word in asks
        for parts in readings(word)
    ]
    by_part: dict[str, list[AskWord]] = {part: [] for word in words for part in word.parts}
    for word in words:
        by_part[word.parts[0]].append(word)
    return by_part


def _things() -> dict[str, Phrase | Facet]:
    tables = load_tables()
    return {**tables.general, **tables.symptoms, **tables.facets}


def readings(word: str) -> Iterator[tuple[str, ...]]:
    """Return the texts that an ask-word of the table stands for, each as its parts: "尿|小便…疼" is
    尿…疼 and 小便…疼.
    """
    return product(*(group.split("|") for group in plain(word).removeprefix("~").split("…")))


def _nearest(sentence: str) -> list[str]:
    """Return the item whose wording has most in common with a sentence; [] if that is not
    enough.
    """
    here, (wordings, having) = _pieces(sentence), _wordings()
    mentioned = [
        (fsum(1 / having[piece] for piece in pieces & here), item, pieces)
        for item, pieces in wordings
    ]
    shares = [
        (s / fsum(1 / having[one] for one in pieces), item)
        for s, item, pieces in mentioned
        if s >= TELLING
    ]
    return [item for share, item in [max(shares, default=(0, ""))] if share > ALIKE]


@cache
def _wordings() -> tuple[list[tuple[str, set[str]]], Counter[str]]:
    """Return the pieces of every name and wording that can be asked for, and for each piece the
    number of items that have it.
    """
    pieces: dict[str, list[set[str]]] = {}
    for item, thing in _things().items():
        phrases = thing.values.values() if isinstance(thing, Facet) else [thing]
        pieces[item] = [
            _pieces(text) for one in phrases for text in (one.zh, one.en, *one.lay, *one.lay_en)
        ]
    having = Counter(piece for texts in pieces.values() for piece in set().union(*texts))
    return [(item, text) for item, texts in pieces.items() for text in texts], having


def _pieces(text: str) -> set[str]:
    """Return the pairs of neighbouring Chinese characters, and the beginnings of longer English
    words.
    """
    return set(PIECE.findall(plain(text)))
