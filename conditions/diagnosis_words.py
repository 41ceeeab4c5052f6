"""A diagnosis as the set of words it says, alike however it is put, Chinese or English.

words_of("急性前壁心肌梗塞 (I21.0)")          # {"acute", "前壁", "myocardial", "infarction"}
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import chain

from common.toml import table_beside
from conditions.table import load_tables
from scoring.text import simplified

TABLE = table_beside(__file__, "diagnosis.toml")
WRITTEN = {re.compile(other): usual for other, usual in TABLE["written"].items()}

Words = frozenset[str]

DIGITS = dict(zip(("i", "ii", "iii", "iv", "v"), "12345", strict=True))
DIGITS |= dict(zip(("one", "two", "three", "four", "five"), "12345", strict=True))
DIGITS |= dict(zip("一二三四五", "12345", strict=True))
NUMBER = "|".join(sorted((*DIGITS, r"\d"), key=len, reverse=True))
NUMBERED = re.compile(rf"\b(type|stage|grade|class|phase) (?:({NUMBER})([a-c]?)|([a-d]))\b")
NUMBERED_ZH = re.compile(
    rf"({NUMBER})([ab]?) ?([型期级度])(?!糖)|({NUMBER})()([型])(?=糖)|(?<![a-z\d])([a-d])()([型])"
)
KINDS = {"型": "type", "期": "stage", "级": "class", "度": "grade"}
CATEGORY = r"(?!b12|t1[0-2])[a-z]\d{2}"  # of ICD-10; a vitamin and vertebrae are none
CODE = re.compile(
    rf"\A\s*{CATEGORY}(?=\s*[:：,，]|\s+[-–—]|[–—]|-\s)"
    rf"|\bicd[- ]?1[01](?:-cm)?:?|\b[a-z]\d{{2}}\.[\dx]{{1,4}}[a-z]?\b|[(（\[]\s*{CATEGORY}\s*[)）\]]"
)
LEADING_CODE = re.compile(rf"\s*({CATEGORY})\b[\s:：,，–—-]*", re.IGNORECASE)
PREFIX = re.compile(
    r"\b(gastro|ileo|keto|hyper|hypo|sub|peri|broncho|cardio|cerebro|cholecysto|cholangio|myo|neuro)-(?=[a-z])"
)
# An a that is no article: hemophilia A, vitamin A deficiency, 血友病A
LETTER_A = re.compile(
    r"(?:(?<=[a-z]{4})(?<!hepatitis)(?<!type)(?<!stage)(?<!grade)(?<!class)(?<!phase)(?<!group) "
    r"|(?<=[\u4e00-\u9fff]))a(?=\s*(?:$|deficiency\b|virus\b|[,;.()（），；]))"
)
VIRUS = re.compile(r"\bhepatitis (?:type )?([a-e])\b")  # its letter is no article
LEVEL_ZH = re.compile(
    r"([颈胸腰])\d{1,2}(?:(?: ?[/、~–-] ?[颈胸腰骶]?|[颈胸腰骶])\d{1,2})?(?=椎)"
)  # 腰4/5椎间盘
REGIONS = {"c": "cervical", "t": "thoracic", "l": "lumbar", "s": "lumbar"}
LEVELS = re.compile(r"(?<![a-z\d])([clts])(\d{1,2}) ?[/~–-] ?([clts]?)(\d{1,2})(?!\d)")  # L4/5
LEVEL = re.compile(r"[clts]\d{1,2}")
POSSESSIVE = re.compile(r"(?<=[a-z])['’]s?\b|(?<=s)['’]")
PLURAL = re.compile(r"(?<![a-z\d])([a-z\d]{2,}[a-hj-rtv-z\d])s(?![a-z\d])")
HAN = re.compile(r"[\u4e00-\u9fff]")
PIECE = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]+")


def plain(text: str) -> str:
    """Return the text in lower case and one spelling, without marks. Numbers of stages join their
    word.
    """
    text = "".join(
        letter
        for letter in unicodedata.normalize("NFKD", text)
        if not unicodedata.combining(letter)
    )
    text = unicodedata.normalize("NFKC", simplified(text)).lower()
    text = CODE.sub(" ", POSSESSIVE.sub("", text))
    text = LEVELS.sub(lambda m: f"{REGIONS[m[1]]} {m[1]}{m[2]} {m[3] or m[1]}{m[4]} ", text)
    text = LETTER_A.sub(" typea", PREFIX.sub(r"\1", _american(text)))
    text = _american(re.sub(r"[^\w\u4e00-\u9fff/?:]+", " ", text)).replace("_", " ")
    text = VIRUS.sub(r"hepatitis\1", text)
    text = NUMBERED.sub(lambda m: f"{m[1]}{DIGITS.get(m[2], m[2]) or ''}{m[3] or m[4] or ''}", text)
    text = NUMBERED_ZH.sub(_numbered, LEVEL_ZH.sub(r"\1", text))
    for other, usual in WRITTEN.items():
        text = other.sub(usual, text)
    return " ".join(text.split())


def _american(text: str) -> str:
    text = re.sub(r"\B[ao]e|[ao]e\B", "e", text)  # but OE
    return re.sub("(?<=tum|col)our", "or", text).replace("sulph", "sulf")


def _numbered(found: re.Match[str]) -> str:
    number, letter, kind = (part for part in found.groups() if part is not None)
    return f" {KINDS[kind]}{DIGITS.get(number, number)}{letter} "


@lru_cache(maxsize=8192)
def words_of(text: str) -> Words:
    """Return the words of a text that have content."""
    said = plain(text)
    for _ in range(4):  # rows of the table may name each other
        before = said
        said = _english().sub(lambda m: _same()[m[0]], _singular(_apart(said)))
        if said == before:
            break
    found = frozenset(PIECE.findall(_singular(_apart(said)))) - frozenset(TABLE["said"]["small"])
    if "fracture" in found and any(LEVEL.fullmatch(word) for word in found):
        return found | {"vertebra"}  # L1 is one
    return found


def _apart(text: str) -> str:
    return _chinese().sub(lambda m: f" {_same().get(m[0], m[0])} ", text)


def _singular(text: str) -> str:
    return PLURAL.sub(r"\1", re.sub(r"(?<=[a-z]{3})ies(?![a-z\d])", "y", text))


@cache
def _same() -> dict[str, str]:
    same = {}
    for read_as, others in TABLE["same"].items():
        for other in others:
            same[_singular(plain(other))] = _singular(plain(read_as))
    for name in [name for name in same if " " in name]:  # "adrenal failure" for insufficiency
        apart, usual = (
            " ".join(same.get(word, word) for word in text.split()) for text in (name, same[name])
        )
        if apart != usual:
            same.setdefault(apart, same[name])
    return same


def words_in(texts: Iterable[str]) -> Words:
    """Return the words of several texts together."""
    return frozenset[str]().union(*map(words_of, texts))


@cache
def known_words() -> Words:
    """Return every word of the tables: none of them is another one misspelt."""
    names = chain(_same(), _same().values(), *conditions())
    return words_in(names) | beside() | {*TABLE["said"]["look_alike"]}


@cache
def diseases() -> frozenset[Words]:
    """Return the names of the table in words, without those that may stand beside any diagnosis."""
    return frozenset(name for name in map(words_of, TABLE["same"]) if not name <= beside())


@cache
def beside() -> Words:
    """Return the words that may stand beside a diagnosis, with those of which it has only one."""
    return words_in(_texts_beside()) - {*TABLE["said"]["changing"]}


def _texts_beside() -> Iterator[str]:
    for kind in ("beside", "organ", "one_of", "agents"):
        yield from chain(*TABLE[kind].values())


@cache
def organs() -> Words:
    """Return the words among them that name places of the body."""
    return words_in(chain(*TABLE["organ"].values()))


@cache
def organs_by_name() -> dict[Words, Words]:
    """Return the places where each condition of the tables may be."""
    where = dict[Words, Words]()
    for one in load_tables().conditions.values():
        parts = set[str]()
        for complaint in one.complaints:
            parts.update(TABLE["felt_in"].get(complaint, ()))
        parts.update(TABLE["also_in"].get(one.en, ()))
        parts.difference_update(TABLE["not_in"].get(one.en, ()))
        named = list[str]()
        for part in parts:
            named += TABLE["organ"][part]
        where[words_of(one.en)] = words_in(named)
    return where


@cache
def _chinese() -> re.Pattern[str]:
    known = {*_same(), *_texts_beside()}
    words = longest_first(word for word in known - {"病"} if HAN.search(word))
    return re.compile(f"{words}|病(?![变情程毒灶理])")  # 病变 is no disease


@cache
def _english() -> re.Pattern[str]:
    known = longest_first(word for word in _same() if not HAN.search(word))
    return re.compile(rf"(?<![a-z0-9])(?:{known})(?![a-z0-9])")


def longest_first(texts: Iterable[str]) -> str:
    """Return a pattern of texts that finds the longest one."""
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))


@cache
def conditions() -> tuple[tuple[str, ...], ...]:
    """Return the names of each condition of the tables. The first two are its own."""
    return tuple(
        (one.en, one.zh, *one.aliases_en, *one.aliases_zh)
        for one in load_tables().conditions.values()
    )
