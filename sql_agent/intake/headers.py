"""Finds our column for a foreign one by its name.

    claims("有效期(月)", "drugs_info")                 # {"period": PART}

Synonyms are in `sql_agent/tables.toml`, the words around them and patterns in `headers.toml`.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from rapidfuzz import fuzz, process

from common.toml import table_beside
from scoring.text import simplified
from sql_agent.tables import NAME_COLUMN, TABLES, WORDS

_LISTED = table_beside(__file__)
UNITS: dict[str, str] = _LISTED["units"] | _LISTED["units_apart"]
IN_BRACKETS = UNITS | {unit.lower(): unit for unit in _LISTED["counted"]} | {"": ""}
# What the cells of a column look like, where its name is not sure
CELLS = {column: re.compile(text, re.I) for column, text in _LISTED["cells"].items()}
JOINTS = re.compile(r"[/、,|&;:()\[\]{}<>【】《》]|及|和|与|或|\band\b|\bor\b")
_NUMBER = r"(-?(?:[0-9]{1,7}|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+)?)"  # longer ones are codes
AMOUNT = re.compile(rf"[<>≤≥]?{_NUMBER}(?:\s*[-~–—至]\s*{_NUMBER})?|[1-9]/[1-9]")  # <0.1, 2-8, 1/2
# The unit at the end of a name, before the place behind a repeated one: 有效期(月) (3), 用量(mg/kg),
# 有效期(月/months), 发病率(1/10万); and 有效期/月
END = r"[^\w%‰°]*(?: \(\d+\))?$"
UNIT = re.compile(rf"(?:[^\w/]|_)1?((?:[^\W_]|[/%‰°])+){END}")
BEHIND_SLASH = re.compile(rf"^[^(\[【]*/([^\W_]+|%|°c){END}")
HUMP = re.compile(r"(?<=[a-z]{2})(?=[A-Z])")  # splits dosageForm, but not mL
BULLET = re.compile(
    r"^\W*(?:\d+(?:\.\d+)*(?![\da-z])|(?:[ivx]+|[a-z]|[一二三四五六七八九十]+)[.、):])[\W_]*"
)


def _any_of(words: Sequence[str]) -> str:
    return "|".join(rf"(?<![a-z]){word}(?![a-z])" if word.isascii() else word for word in words)


FILLERS = _any_of(_LISTED["fillers"])
IN_LANGUAGE = re.compile(
    rf"(.+?)[\W_]*(?:{_any_of(_LISTED['languages'])}|({_any_of(_LISTED['other'])}))\W*"
)
# The syllable of each character
PINYIN: dict[str, str | int | None] = {}
for _syllable, _same in re.findall(r"([a-z]+)([^a-z\s]+)", _LISTED["pinyin"]):
    PINYIN |= dict.fromkeys(_same, f" {_syllable}")
LONGEST = 40  # characters of a column's name. Longer cells are prose
# How surely a name stands for a column: it is ours or the comment, it is one of the words, a part
# of it is, it is a lesser word, or nearly a word.
OWN = 6
EXACT = 5
PART = 4
WEAK = 3
NEAR = 2
NEAR_NAME = 90  # of 100, rapidfuzz's ratio


def _plain(name: str) -> str:
    text = HUMP.sub(" ", unicodedata.normalize("NFKC", name)).lower()
    return BULLET.sub("", simplified(text))


def normalise(name: str) -> str:
    """Return a column name without differences of width, case, spaces and punctuation."""
    return re.sub(r"[\W_的]+", "", unicodedata.normalize("NFKC", name).lower())


def _in_pinyin(words: Mapping[str, str]) -> dict[str, str]:
    found = defaultdict(set)
    for word, column in words.items():
        syllables = word.translate(str.maketrans(PINYIN)).split()
        for spelt in ("".join(syllables), "".join(syllable[0] for syllable in syllables)):
            found[spelt].add(column)
    known = {}
    for word, columns in found.items():
        if len(columns) == 1 and len(word) > 2:
            known[word] = columns.pop()
    return known


def _column_by_word(columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    found = {}
    for column, words in columns.items():
        for word in words:
            found[normalise(word)] = column
    return found


KNOWN: dict[str, dict[str, str]] = {}
LESSER: dict[str, dict[str, str]] = {}
for _table, _columns in WORDS.items():
    KNOWN[_table] = _column_by_word(_columns) | {normalise(name): name for name in _columns}
    _weak = _column_by_word(_LISTED["weak"][_table])
    LESSER[_table] = _in_pinyin(_weak | KNOWN[_table]) | _weak


def _readings(pieces: Sequence[str]) -> dict[str, bool]:
    """Return shortened pieces of a name, and whether more than a beginning was cut."""
    found = {normalise(re.sub(FILLERS, " ", piece)): True for piece in pieces}
    found |= {normalise(piece): False for piece in pieces if piece not in UNITS}
    for start in _LISTED["before"]:
        for word, cut in list(found.items()):
            if word.startswith(start):
                found[word.removeprefix(start)] = cut
    ended = {}
    for end in (*_LISTED["after"], *_LISTED["units"]):
        for word in found:
            if word.endswith(end):
                ended[word.removesuffix(end)] = True
    return ended | found


def _inside(plain: str, table: str) -> dict[str, int]:
    """Return the claims of a name without its language at the end, or without its path."""
    split = IN_LANGUAGE.fullmatch(plain)
    if split:
        most = NEAR if split[2] else PART
        return {column: min(rank, most) for column, rank in claims(split[1], table).items()}
    if "." not in plain:
        return {}
    inner = claims(plain.partition(".")[2], table)  # an id may be another entity's
    return {column: PART for column, rank in inner.items() if rank >= PART and column != "id"}


@lru_cache(maxsize=4096)
def claims(header: str, table: str) -> dict[str, int]:
    """Return the columns a foreign name may mean and how surely, or {} if it decides nothing."""
    plain = _plain(header)
    known = KNOWN[table]
    lesser = LESSER[table]
    entity = (NAME_COLUMN[table], "id")  # what is left of 疾病描述 without 描述 is not a name
    whole = normalise(plain)
    if whole in known:
        column = known[whole]
        ours = map(normalise, (column, WORDS[table][column][0], *_LISTED["peers"]))
        return {column: OWN if column not in entity and whole in ours else EXACT}
    inside = _inside(plain, table) if len(plain) <= 4 * LONGEST else {}
    if inside:
        return inside
    pieces = [piece for piece in JOINTS.split(plain) if piece]
    for words, parts, rank in (
        (known, [plain], PART),
        (known, pieces, PART),
        (lesser, [plain], WEAK),
        (lesser, pieces[:1], WEAK),
    ):
        found = {}
        for word, cut in _readings(parts).items():
            if word in words and not (cut and words[word] in entity):
                found[words[word]] = rank
        if found:
            return found
    near = process.extractOne(whole, known.keys(), scorer=fuzz.ratio, score_cutoff=NEAR_NAME)
    return {known[near[0]]: NEAR} if near else {}


def is_known(cell: Any) -> bool:
    """Return whether a cell reads like the name of a column of either table."""
    header = cell.strip() if isinstance(cell, str) else ""
    return 0 < len(header) <= LONGEST and any(
        max(claims(header, table).values(), default=0) > NEAR for table in TABLES
    )


def is_word(cell: str) -> bool:
    """Return whether a cell is a word for a column of either table, as it is listed."""
    word = normalise(cell) if len(cell) <= LONGEST else ""
    return any(word in words for words in (*KNOWN.values(), *LESSER.values()))


@lru_cache(maxsize=4096)
def _unit(header: str) -> str:
    plain = re.sub(r"\s*/\s*", "/", _plain(header))
    for pattern, known in ((UNIT, IN_BRACKETS), (BEHIND_SLASH, UNITS)):
        found = pattern.search(plain)
        pieces = found[1].split("/") if found else ["?"]
        parts = list(dict.fromkeys(known.get(piece, "?") for piece in pieces))  # 月/months is one
        is_day = len(parts) > 1 and parts[0] in _LISTED["times"]  # (年/月)
        if "?" not in parts and not is_day:
            return "/".join(parts)
    return ""


def with_unit(header: str, text: str) -> str:
    """Return a bare number or range with the unit at the end of its column's name or in its brackets."""
    number = unicodedata.normalize("NFKC", text)
    amount = AMOUNT.fullmatch(number)
    if not amount or not _unit(header):
        return text
    low, high = amount.groups()
    if high and float(low.replace(",", "")) >= float(high.replace(",", "")):
        return text  # 2027-03 is a month
    return number + _unit(header)
