"""Forms of Chinese and English medical text in which what says the same is the same.

canonical("每次0.5克，每天两次")          # "每次500毫克,每日2次"
canonical("妊娠期妇女，不超过77℉")        # "孕妇,25度以下"
closeness("一次15毫克", "每次15毫克")     # 0.74: one character differs
closeness("一次15毫克", "一次20毫克")     # 0.0: the numbers differ

Characters come from OpenCC, numerals from cn2an, units from pint, lay and clinical words from synonyms.tsv; rates, limits
and all word lists of the judge are data: words.toml.
"""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rapidfuzz import fuzz

CHANCE = 0.5  # below this share of matching characters, what matches is what Chinese phrases have in common anyway
CHANCE_PAIRS = 0.3  # the same for pairs of characters that stand anywhere: "胸痛持续" for "持续胸痛"
COMMON = 0.3  # of 1: how much the most frequent words say
NEAR = 0.9  # a near match never earns as much as the text itself

HERE = Path(__file__).parent
DATA = tomllib.loads((HERE / "words.toml").read_text(encoding="utf-8"))
UNITS = {written: name for many, name in DATA["units"].items() for written in many.split()}
"""Unit as written -> its name in pint."""


def _patterns() -> SimpleNamespace:
    texts = {"unit": "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))}
    texts["value"] = rf"-?\d[\d./~]{{0,12}}(?:{'|'.join(DATA['kept_units'])}|岁|次)?"
    for name, entry in DATA["patterns"].items():
        text = entry if isinstance(entry, str) else "|".join(entry)
        texts[name] = re.sub(r"{{(\w+)}}", lambda other: texts[other[1]], text)
    return SimpleNamespace(**{name: re.compile(text) for name, text in texts.items()})


RE = _patterns()
"""The compiled patterns of words.toml as attributes."""
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
    return RE.not_word.sub("", normalise(text)).replace("%", "")


@lru_cache(maxsize=8192)
def numbers(text: str) -> frozenset[float]:
    """The numbers written in digits, each once."""
    return frozenset(map(float, RE.number.findall(normalise(text))))


def fragments(text: str) -> list[str]:
    """The text's parts between punctuation, as words only: what can be right or wrong by itself."""
    parts = map(words_only, RE.separator.split(unicodedata.normalize("NFKC", text)))
    return [part for part in parts if part]


@lru_cache(maxsize=8192)
def amounts(text: str) -> frozenset[tuple[float, str]]:
    """The numbers of canonical text with their units; the unit is "" where none follows."""
    return frozenset((float(number), unit) for number, unit in RE.amount.findall(text))


@lru_cache(maxsize=8192)
def canonical(text: str) -> str:
    """The normalised lines, without list marks and markup, with characters, words, numbers, units and limits in one form."""
    text = RE.gap.sub("、", RE.markup.sub("", RE.list_mark.sub("", RE.unseen.sub("", text))))
    text = one_word(_rewritten(unicodedata.normalize("NFKC", _simplified(text)).lower(), "words"))
    text = _rewritten("\n".join(map(normalise, text.splitlines())), "before")
    text = RE.range.sub(r"\1\3~\2\3", RE.numeral.sub(_digits, text))
    text = RE.quantity.sub(_in_kept_unit, text)
    return one_word(_rewritten(text, "after"))


def _simplified(text: str) -> str:
    return str(_library("opencc").convert(text))


@cache
def _library(name: str) -> Any:
    """A library's object, made when it is first needed: pint and jieba take half a second each."""
    if name == "opencc":
        import opencc

        return opencc.OpenCC("t2s")
    if name == "pint":
        import pint

        return pint.UnitRegistry(cache_folder=None)
    import jieba

    jieba.setLogLevel("ERROR")
    cutter = jieba.Tokenizer()
    for word in (*_synonyms().values(), *DATA["field"].split()):
        cutter.add_word(word)
    return cutter


@lru_cache(maxsize=8192)
def cut(text: str) -> tuple[tuple[str, float], ...]:
    """The words of a text, and how much each says, from COMMON (增加) to 1 (粉尘), by how often it is written."""
    cutter = _library("jieba")
    words = [word for word in cutter.cut(text) if word.strip()]
    rarity = ((10 - math.log(cutter.FREQ.get(word, 0) + 1)) / 3 for word in words)
    return tuple((word, min(1.0, max(COMMON, rare))) for word, rare in zip(words, rarity, strict=True))


@cache
def _synonyms() -> dict[str, str]:
    """Every expression of synonyms.tsv -> the first of its group."""
    lines = (HERE / "synonyms.tsv").read_text(encoding="utf-8").splitlines()
    groups = (unicodedata.normalize("NFKC", line).lower().split("\t") for line in lines if line[:1] not in ("", "#"))
    return {word: group[0] for group in groups for word in group}


@lru_cache(maxsize=8192)
def one_word(text: str) -> str:
    """The text with every expression that synonyms.tsv knows as the first of its group, the longest one at each place."""
    known, longest, parts, place = _synonyms(), _longest(), [], 0
    while place < len(text):
        for size in range(min(longest.get(text[place], 0), len(text) - place), 0, -1):
            word = text[place : place + size]
            if word in known and _is_whole(text, place, size):
                parts.append(known[word])
                place += size
                break
        else:
            parts.append(text[place])
            place += 1
    return "".join(parts)


@cache
def _longest() -> dict[str, int]:
    """The length of the longest expression by its first sign."""
    found: dict[str, int] = {}
    for word in _synonyms():
        found[word[0]] = max(found.get(word[0], 0), len(word))
    return found


def _is_whole(text: str, start: int, size: int) -> bool:
    """Whether an expression in ASCII letters does not stand inside another word."""
    around = text[start - 1 : start] + text[start + size : start + size + 1]
    return not text[start].isascii() or not any(sign.isascii() and sign.isalnum() for sign in around)


def _rewritten(text: str, when: str) -> str:
    for pattern, written in REWRITES[when]:
        text = pattern.sub(written, text)
    return text


def _digits(match: re.Match[str]) -> str:
    """A Chinese numeral in digits; "两三" is "2~3"; "一" as an article stays."""
    import cn2an

    text = match.group()
    if text == "一" and RE.article.match(match.string, match.start()):
        return text
    if re.fullmatch("[一二两三四五六七八九]{2}", text):
        return "~".join(str(cn2an.cn2an(sign, "smart")) for sign in text)
    try:
        return f"{cn2an.cn2an(text, 'smart'):g}"
    except ValueError:
        return text  # no numeral after all: "十百"


def _in_kept_unit(match: re.Match[str]) -> str:
    return _converted(*match.groups())


@lru_cache(maxsize=4096)
def _converted(number: str, unit: str) -> str:
    quantity = _library("pint").Quantity(float(number), UNITS[unit])
    kept, name = next(pair for pair in DATA["kept_units"].items() if quantity.is_compatible_with(pair[1]))
    return f"{float(f'{quantity.to(name).magnitude:.4g}'):.15g}{kept}"


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
