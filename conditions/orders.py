"""Which examination an order means: by name, synonym, one of its numbers, or a spelling next to one
of these.

    named("Complete Blood Count (CBC)")      # "complete blood count"
    named("CT scan of the abdomn")           # "abdominal CT"
    named("CBC and CRP")                     # None: several in one order are none

Everything goes by the English names of conditions/examinations.toml, by those that orders.toml
has further, or, where these do not know it, by the name that a case's own record has. A panel, such
as a basic metabolic panel, is several examinations under one name.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from pathlib import Path

from conditions.table import load_tables

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
VIRUS = re.compile(r"\b(hep(?:atitis)?) ([a-e])\b")  # hepatitis A: its letter is no article

LEG = re.compile(r"\blower (?:extremit(?:y|ies)|limbs?)\b")
# Which of two sides a text names; the side of a quadrant or of the heart belongs to the name.
SIDE = re.compile(
    r"\b(left|right)\b(?! (?:upper |lower )?(?:quadrant|heart))|([左右])(?![上下]腹|心)", re.I
)
SIDES = {"左": "left", "右": "right"}

ORDERS = tomllib.loads(Path(__file__).with_name("orders.toml").read_text(encoding="utf-8"))
BESIDE, WORDS = ORDERS["beside"], ORDERS["words"]
TAIL = re.compile(rf"(?:(?<=\s)|^)(?:{'|'.join(BESIDE['tail'])})(?=\s|$)", re.IGNORECASE)
JOINED = re.compile(r"/|\+(?=\s|[A-Za-z])|,|、|和|及|\band\b|&", re.IGNORECASE)
BEFORE = re.compile(rf"(?:{'|'.join(BESIDE['chinese_before'])})+(?=.)")
BEHIND = re.compile(rf"(?:{'|'.join(BESIDE['chinese_behind'])})+$")
INSIDE = re.compile(rf"{'|'.join(BESIDE['chinese_inside'])}")

Words = tuple[str, ...]  # of a name, in alphabetical order
Index = Mapping[Words, str]


def named(text: str, own: Iterable[str] = ()) -> str | None:
    """Return the examination that a text orders, by its name in the tables or among `own`; None if
    it orders none.
    """
    if len(text) > LONGEST:
        return None
    own = [name for name in own if {side_of(name), side_of(text)} != {"left", "right"}]
    outside, _, inside = text.partition("(")
    readings = [words for part in (text, outside, inside) if (words := _words(part))]
    indices = (_index_of({name: [name] for name in own}), _tables())
    exact = (_exact(words, index) for index in indices for words in readings)
    nearest = (_nearest(words, index) for index in indices for words in readings)
    usual = (_usual(part) for part in (text, outside, inside))
    return next((name for name in chain(exact, usual, nearest) if name), None)


def side_of(text: str) -> str:
    """Return "left" or "right" if a text names one of the two, else ""."""
    found = {SIDES.get(one, one) for pair in SIDE.findall(text.lower()) for one in pair if one}
    return found.pop() if len(found) == 1 else ""


@cache
def covered_by(name: str) -> frozenset[str]:
    """The examinations that an order of this name has made: itself, those of a panel, and panels of
    these alone.
    """
    parts = PANELS.get(name, frozenset())
    smaller = {panel for panel, others in PANELS.items() if others <= parts}
    return frozenset({name} | parts | smaller)


@cache
def table_key(name: str) -> str | None:
    """Return the key of an English name in conditions/examinations.toml; None for an unknown
    name.
    """
    return next((key for key, one in load_tables().examinations.items() if one.en == name), None)


def _usual(text: str) -> str | None:
    """Return the one examination that a text orders with the words of orders.toml beside its name,
    or by several of its parts; None otherwise.
    """
    plain = unicodedata.normalize("NFKC", text)
    tail = TAIL.search(plain)
    head, rest = (plain[: tail.start()], plain[tail.end() :]) if tail else (plain, "")
    found = _reduced().get(_bare(head)) or _together(head)
    if not found:
        return None
    others = {_named_plainly(part) for part in JOINED.split(rest) if not _is_number(part, found)}
    return None if others - {None, found} else found


def _is_number(text: str, name: str) -> bool:
    """Return whether a text is one of the numbers of an examination, such as the glucose of a lumbar
    puncture.
    """
    key = table_key(name)
    parts = load_tables().examinations[key].parts.values() if key else ()
    return any(_words(text) == _words(known) for one in parts for known in (one.en, one.zh))


def _together(text: str) -> str | None:
    """Return the examination that has all of several parts joined by "and" or a slash; None
    otherwise.
    """
    parts = [part for part in JOINED.split(text) if part.strip()]
    found = {_named_plainly(part) for part in parts}
    return found.pop() if len(parts) > 1 and len(found) == 1 else None


def _named_plainly(text: str) -> str | None:
    return _tables().get(_words(text)) or _reduced().get(_bare(text))


def _bare(text: str) -> Words:
    """Return the words of a name without those that may stand beside it, or all its words if no
    other is left.
    """
    plain = text
    for old, new in BESIDE["chinese_words"].items():
        plain = plain.replace(old, new)
    plain = INSIDE.sub("", plain)
    before = BEFORE.match(plain)
    plain = plain[before.end() :] if before else plain
    behind = BEHIND.search(plain)
    if behind and len(plain[: behind.start()].strip()) > 1:
        plain = plain[: behind.start()]
    words = {_word(WORDS.get(word, word)) for word in _words(plain)} - BESIDE_ENGLISH
    return tuple(sorted(words - SOFT if words - SOFT - KINDS else words))


def _tells(words: Words) -> bool:
    """Return whether words say more than a kind of examination, such as CT. Two kinds together may
    be a name.
    """
    return bool({*words} - KINDS) or len(words) > 1


@cache
def _reduced() -> Index:
    """Return every name of the tables and of orders.toml by its bare words, if these belong to one
    examination only.
    """
    tables = load_tables().examinations
    every = {one.en: (one.en, *one.aliases_en, one.zh, *one.aliases_zh) for one in tables.values()}
    more = {tables[key].en: tuple(names) for key, names in ORDERS["names"].items()}
    homes: dict[Words, set[str]] = {}
    for known in (every, more, _beside_the_tables()):
        for name, texts in known.items():
            for text in texts:
                homes.setdefault(_bare(text), set()).add(name)
    return {
        words: names.pop() for words, names in homes.items() if len(names) == 1 and _tells(words)
    }


def _exact(words: Words, index: Index) -> str | None:
    return index.get(words)


def _nearest(words: Words, index: Index) -> str | None:
    """The one examination with a name of which each word is spelt next to one of these; None: none,
    or several. An abbreviation is spelt right or another one.
    """
    if sum(map(len, words)) <= SHORT:
        return None
    names = {
        name for other, name in index.items() if len(other) == len(words) and _alike(words, other)
    }
    return names.pop() if len(names) == 1 else None


def _alike(words: Words, others: Words) -> bool:
    from rapidfuzz.distance import OSA

    def same(one: str, other: str) -> bool:
        length = min(len(one), len(other))
        plain = one.isalpha() and one.isascii()  # of Chinese, another character is another word
        most = 0 if length < SHORT or not plain else 1 if length < LONG else 2
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
    """Return every examination by its names, and by the name of a number that only it has and no
    other name equals.
    """
    every = load_tables().examinations.values()
    parts = [
        (_words(text), one.en)
        for one in every
        for part in one.parts.values()
        for text in (part.en, part.zh)
    ]
    homes = {words: {name for other, name in parts if other == words} for words, _ in parts}
    alone = {words: names.pop() for words, names in homes.items() if len(names) == 1}
    return (
        alone
        | _index_of(_beside_the_tables())
        | _index_of({one.en: (one.en, *one.aliases_en, one.zh, *one.aliases_zh) for one in every})
    )


def _beside_the_tables() -> dict[str, tuple[str, ...]]:
    """Return the names of the examinations that orders.toml alone knows, and of the panels."""
    further = {name: (name, *names) for name, names in ORDERS["further"].items()}
    panels = {name: (name, *panel["names"]) for name, panel in ORDERS["panels"].items()}
    return further | panels


def _index_of(names: Mapping[str, Iterable[str]]) -> dict[Words, str]:
    return {_words(text): name for name, texts in names.items() for text in texts}


def _words(text: str) -> Words:
    """Return the words that have content, in one spelling and in alphabetical order; ()
    for none.
    """
    plain = unicodedata.normalize("NFKC", text).lower()
    plain = LEG.sub("leg", VIRUS.sub(r"\1 virus0\2", LETTER.sub(r"\1", plain)))
    words = [_word(word) for word in re.findall(r"[^\W_]+", plain)]
    return tuple(sorted([word for word in words if word not in NOISE] or words))


def _word(word: str) -> str:
    """Return a word in one spelling for British and American ones, plurals, "examination" and
    "-gram".
    """
    word = re.sub("[ao]e", "e", word)
    word = re.sub("(?<=[a-z]{3})graph(y|s|ies)?$", "gram", word)
    word = {"examination": "exam", "examinations": "exam", "exams": "exam"}.get(word, word)
    return (
        word[:-1]
        if len(word) > SHORT and word.endswith("s") and not word.endswith(("ss", "is", "us"))
        else word
    )


PANELS = {
    name: frozenset(
        load_tables().examinations[key].en if key in load_tables().examinations else key
        for key in panel["of"]
    )
    for name, panel in ORDERS["panels"].items()
}
BESIDE_ENGLISH, SOFT, KINDS = (
    frozenset(map(_word, BESIDE[name])) for name in ("english", "soft", "kinds")
)
