"""Finds which of our columns a foreign one is, by its name and the look of its cells.

The synonyms are in `sql_agent/tables.toml`; the words around them, units and patterns of cells
are in `headers.toml`.

    claims("有效期(月)", "drugs_info")                 # {"period": PART}
    looks_like("med_approval", ["国药准字H20051234"])  # 1.0
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path

from rapidfuzz import fuzz, process

from sql_agent.tables import NAME_COLUMN, TABLES, WORDS

_LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
UNITS: dict[str, str] = _LISTED["units"]
ONLY = tuple(_LISTED["cells"]["only"])
TELLING = tuple(_LISTED["cells"]["telling"])
CELLS = {
    column: re.compile(text, re.I)
    for kind in _LISTED["cells"].values()
    for column, text in kind.items()
}
JOINTS = re.compile(r"[/、,|&;:()\[\]{}<>【】《》]|及|和|与|或|\band\b|\bor\b")
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
HUMP = re.compile(r"(?<=[a-z]{2})(?=[A-Z])")  # splits dosageForm, but not mL
BULLET = re.compile(
    r"^\W*(?:\d+(?:\.\d+)*(?![\da-z])|(?:[ivx]+|[a-z]|[一二三四五六七八九十]+)[.、):])[\W_]*"
)
FILLERS, LANGUAGE, OTHER = (
    "|".join(rf"(?<![a-z]){word}(?![a-z])" if word.isascii() else word for word in _LISTED[key])
    for key in ("fillers", "languages", "other")
)
_SYLLABLES = re.findall(r"([a-z]+)([^a-z\s]+)", _LISTED["pinyin"])
PINYIN = str.maketrans(
    {character: f" {syllable}" for syllable, same in _SYLLABLES for character in same}
)
LONGEST = 40  # characters of a column's name; longer cells are prose
# How surely a name stands for a column: it is ours or the comment, it is one of the words, a part
# of it is, it is a lesser word, nearly a word, or only the cells tell.
OWN = 6
EXACT = 5
PART = 4
WEAK = 3
NEAR = 2
BY_CELLS = 1
NEAR_NAME = 90  # of 100, rapidfuzz's ratio
_simplifier = cache(lambda: import_module("opencc").OpenCC("t2s"))  # loaded for Chinese names only


def _plain(name: str) -> str:
    """Return a name in half width, lower case and simplified characters, without the number or
    bullet before it.
    """
    text = HUMP.sub(" ", unicodedata.normalize("NFKC", name)).lower()
    if not text.isascii():
        # Halves of surrogate pairs cannot be encoded
        text = _simplifier().convert(text.encode("utf-8", "replace").decode())
    return BULLET.sub("", text)


def normalise(name: str) -> str:
    """Return a column name without differences of writing: width, case, spaces, underscores,
    brackets and punctuation.
    """
    return re.sub(r"[\W_的]+", "", unicodedata.normalize("NFKC", name).lower())


def _in_pinyin(words: Mapping[str, str]) -> dict[str, str]:
    """Return words in pinyin and, from three characters on, also by their initials; a spelling of
    two columns is left out.
    """
    found = defaultdict(set)
    for word, column in words.items():
        syllables = word.translate(PINYIN).split()
        for spelt in ("".join(syllables), "".join(syllable[0] for syllable in syllables)):
            found[spelt].add(column)
    return {
        word: columns.pop()
        for word, columns in found.items()
        if len(columns) == 1 and len(word) > 2
    }


def _column_by_word(columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the column that each word stands for, as `normalise` leaves the word."""
    return {normalise(word): column for column, words in columns.items() for word in words}


KNOWN = {table: _column_by_word(columns) for table, columns in WORDS.items()}
LESSER = {table: _column_by_word(columns) for table, columns in _LISTED["weak"].items()}
for table, words in KNOWN.items():
    words |= {normalise(column): column for column in WORDS[table]}
    LESSER[table] = _in_pinyin(LESSER[table] | words) | LESSER[table]


def _readings(pieces: Sequence[str]) -> dict[str, bool]:
    """Return the words that pieces of a name may be once insignificant parts are removed, each with
    whether more than a beginning was cut.
    """
    found = {normalise(re.sub(FILLERS, " ", piece)): True for piece in pieces}
    found |= {normalise(piece): False for piece in pieces if piece not in UNITS}
    ends = (*_LISTED["after"], *UNITS)
    found |= {
        word.removeprefix(s): cut
        for s in _LISTED["before"]
        for word, cut in found.items()
        if word.startswith(s)
    }
    return {
        word.removesuffix(end): True for end in ends for word in found if word.endswith(end)
    } | found


def _inside(plain: str, table: str) -> dict[str, int]:
    """Return what a name claims without the language at its end, or without a path before it, which
    says to which entity an id belongs.
    """
    if split := re.fullmatch(rf"(.+?)[\W_]*(?:{LANGUAGE}|({OTHER}))\W*", plain):
        return {
            column: min(rank, NEAR if split[2] else PART)
            for column, rank in claims(split[1], table).items()
        }
    inner = claims(plain.partition(".")[2], table) if "." in plain else {}
    return {column: PART for column, rank in inner.items() if rank >= PART and column != "id"}


@lru_cache(maxsize=4096)
def claims(header: str, table: str) -> dict[str, int]:
    """Return the columns of a table that a foreign name may stand for, and how surely; {} if the
    name decides nothing.
    """
    plain = _plain(header)
    known = KNOWN[table]
    lesser = LESSER[table]
    entity = (NAME_COLUMN[table], "id")  # what is left of 疾病描述 without 描述 is not a name
    if column := known.get(whole := normalise(plain)):
        ours = map(normalise, (column, WORDS[table][column][0], *_LISTED["peers"]))
        return {column: OWN if column not in entity and whole in ours else EXACT}
    if inside := _inside(plain, table) if len(plain) <= 4 * LONGEST else {}:
        return inside
    pieces = [piece for piece in JOINTS.split(plain) if piece]
    for words, parts in (
        (known, [plain]),
        (known, pieces),
        (lesser, [plain]),
        (lesser, pieces[:1]),
    ):
        found = [(words[word], cut) for word, cut in _readings(parts).items() if word in words]
        if kept := [column for column, cut in found if not (cut and column in entity)]:
            return dict.fromkeys(kept, PART if words is known else WEAK)
    near = process.extractOne(whole, known.keys(), scorer=fuzz.ratio, score_cutoff=NEAR_NAME)
    return {known[near[0]]: NEAR} if near else {}


def is_known(header: str) -> bool:
    """Return whether a cell reads like the name of a column of either table."""
    return len(header) <= LONGEST and any(
        max(claims(header, table).values(), default=0) > NEAR for table in TABLES
    )


def nearest(header: str, table: str) -> tuple[str, float]:
    """Return the column whose words are most like a foreign name, and how much, of 100; 0 if its
    cells contradicted the column.
    """
    if found := claims(header, table):
        return next(iter(found)), 0
    word, likeness, _ = process.extractOne(
        normalise(_plain(header)), KNOWN[table].keys(), scorer=fuzz.ratio
    )
    return KNOWN[table][word], likeness


def with_unit(header: str, text: str) -> str:
    """Return a bare number with the unit that stands at the end of its column's name, or in the
    brackets there.
    """
    unit = re.search(r"[\W_]([^\W_]+)\W*$", _plain(header)) if NUMBER.fullmatch(text) else None
    return text + (UNITS.get(unit[1], "") if unit else "")


def looks_like(column: str, cells: Sequence[str]) -> float | None:
    """Return the share of cells that look like the column's; None if there are no cells or no
    pattern.
    """
    pattern = CELLS.get(column)
    return sum(map(bool, map(pattern.fullmatch, cells))) / len(cells) if pattern and cells else None
