"""Comparing Chinese and English medical text: normal and canonical form, clauses, numbers, closeness of a fragment.

canonical("每次0.5克，每天两次")          # "每次500毫克,每日2次"
canonical("不超过25℃")                    # "25度以下"
closeness("一次15毫克", "每次15毫克")     # 0.74: one character differs
closeness("一次15毫克", "一次20毫克")     # 0.0: the numbers differ

In canonical text equal doses are equal however they are written: masses in milligrams, volumes in millilitres, weeks as
days, Chinese numerals before a measure word as digits. The judge's word lists are data: patterns.toml.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import SimpleNamespace

from rapidfuzz import fuzz

CHANCE = 0.5  # below this share of matching characters, what matches is what Chinese phrases have in common anyway
CHANCE_PAIRS = 0.3  # the same for pairs of characters that stand anywhere: "胸痛持续" for "持续胸痛"
NEAR = 0.9  # a near match never earns as much as the text itself

DATA = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text(encoding="utf-8"))
UNITS = {unit: (kept, factor) for names, (kept, factor) in DATA["units"].items() for unit in names.split()}
"""Unit as written -> the unit kept, and how many of it one is."""


def _patterns() -> SimpleNamespace:
    kept = "|".join(dict.fromkeys(unit for unit, _ in UNITS.values()))
    written = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
    texts = {"unit": written, "value": rf"\d[\d./]{{0,12}}(?:{kept})?"}
    for name, entry in DATA["patterns"].items():
        text = entry if isinstance(entry, str) else "|".join(entry)
        texts[name] = re.sub(r"{{(\w+)}}", lambda other: texts[other[1]], text)
    return SimpleNamespace(**{name: re.compile(text) for name, text in texts.items()})


RE = _patterns()
"""The compiled patterns of patterns.toml as attributes."""
REWRITES = {
    when: [(re.compile(old.replace("{{value}}", RE.value.pattern)), new) for old, new in pairs.items()]
    for when, pairs in DATA["rewrites"].items()
}


def normalise(text: str) -> str:
    """The text in NFKC form, lower case, without white space and unseen signs: "１５ ｍｇ" and "15mg" become equal."""
    return "".join(unicodedata.normalize("NFKC", RE.unseen.sub("", text)).lower().split())


@lru_cache(maxsize=8192)
def words_only(text: str) -> str:
    """The normalised text's letters, digits and Chinese characters; "" when there are none."""
    return RE.not_word.sub("", normalise(text))


@lru_cache(maxsize=8192)
def numbers(text: str) -> frozenset[float]:
    """The numbers written in digits, each once."""
    return frozenset(map(float, RE.number.findall(normalise(text))))


def fragments(text: str) -> list[str]:
    """The text's parts between punctuation, as words only: what can be right or wrong by itself."""
    parts = map(words_only, RE.separator.split(unicodedata.normalize("NFKC", text)))
    return [part for part in parts if part]


def chinese_number(text: str) -> int:
    """The value of Chinese numerals below ten thousand: "三十七" is 37, "两" is 2, "二〇" is 20."""
    total, digit, positional = 0, 0, not set(text) & set("十百千")
    for character in text.replace("两", "二"):
        value = int(unicodedata.numeric(character))
        if positional:
            total = total * 10 + value
        elif value >= 10:
            total, digit = total + max(1, digit) * value, 0
        else:
            digit = value
    return total + digit


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """The normalised lines, without list marks, with numbers, units, rates, limits and a few synonyms in one form."""
    text = "\n".join(map(normalise, RE.list_mark.sub("", text).splitlines()))
    text = _rewritten(text, "before")
    text = RE.numeral.sub(_digits, text)
    text = RE.quantity.sub(_in_base_unit, text)
    return _rewritten(text, "after")


def _rewritten(text: str, when: str) -> str:
    for pattern, written in REWRITES[when]:
        text = pattern.sub(written, text)
    return text


def _digits(match: re.Match[str]) -> str:
    text = match.group()
    is_article = text == "一" and RE.article.match(match.string, match.start())
    return text if is_article else str(chinese_number(text))


def _in_base_unit(match: re.Match[str]) -> str:
    unit, factor = UNITS[match.group(2)]
    return f"{round(float(match.group(1)) * factor, 6):.15g}{unit}"


def closeness(fragment: str, text: str) -> float:
    """How well `text` contains `fragment`, in [0, 1]; both as words only.

    1 if it is contained, 0 if its numbers are missing, in between by the better of two shares: of its characters that
    match in one place (0 below one half), and of its characters whose pairs stand anywhere (0 below 0.3).
    """
    if not numbers(fragment) <= numbers(text):
        return 0.0
    if fragment in text:
        return 1.0
    window = (_best_window(fragment, text) - CHANCE) / (1 - CHANCE)
    pairs = (_paired(fragment, text) - CHANCE_PAIRS) / (1 - CHANCE_PAIRS)
    return NEAR * max(0.0, window, pairs)


def _paired(fragment: str, text: str) -> float:
    """The share of the fragment's characters that belong to a pair of neighbours which `text` has too."""
    starts = (i for i in range(len(fragment) - 1) if fragment[i : i + 2] in text)
    return len({place for i in starts for place in (i, i + 1)}) / len(fragment)


def _best_window(fragment: str, text: str) -> float:
    """The similarity in [0, 1] of `fragment` and the stretch of `text` most like it."""
    if len(text) < len(fragment):
        return fuzz.ratio(fragment, text) / 100
    match = fuzz.partial_ratio_alignment(fragment, text)
    if match is None or not numbers(fragment) <= numbers(text[match.dest_start : match.dest_end]):
        return 0.0
    return match.score / 100


@dataclass(frozen=True)
class Reading:
    """An answer as it is compared: canonical text, words only, clauses; `asked` is what the question says."""

    answer: str
    question: str

    @cached_property
    def text(self) -> str:
        return canonical(self.answer)

    @cached_property
    def words(self) -> str:
        return words_only(self.text)

    @cached_property
    def asked(self) -> str:
        return words_only(canonical(self.question))

    @cached_property
    def clauses(self) -> list[tuple[str, str]]:
        """Each clause with its words."""
        pairs = ((clause, words_only(clause)) for clause in RE.clause.split(self.text))
        return [(clause, words) for clause, words in pairs if words]
