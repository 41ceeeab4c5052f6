"""Forms of Chinese and English medical text in which what says the same is the same.

canonical("每次0.5克，每天两次")          # "每次500毫克,每日2次"
canonical("妊娠期妇女，不超过77℉")        # "孕妇,25度以下"

By OpenCC, cn2an, pint and jieba, the synonyms of synonyms.tsv, and the word lists and rewritings of words.toml.
"""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from functools import cache, lru_cache, reduce
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

COMMON = 0.3  # of 1: how much the most frequent words say
HERE = Path(__file__).parent
DATA = tomllib.loads((HERE / "words.toml").read_text(encoding="utf-8"))
UNITS = {
    word: name
    for many, name in (entry.split(":") for entry in DATA["units"].split())
    for word in many.split("/")
}
KEPT = dict(
    entry.split(":") for entry in DATA["kept_units"].split()
)  # unit -> its name in pint, as in UNITS


def _patterns() -> SimpleNamespace:
    texts = {"unit": "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))}
    texts["value"] = rf"-?\d[\d./~]{{0,12}}(?:{'|'.join(KEPT)}|岁|次|%)?"
    for name, entry in DATA["patterns"].items():
        text = entry if isinstance(entry, str) else "|".join(entry)
        texts[name] = re.sub(r"{{(\w+)}}", lambda other: texts[other[1]], text)
    return SimpleNamespace(**{name: re.compile(text) for name, text in texts.items()})


RE = _patterns()  # the compiled patterns of words.toml as attributes
REWRITES = {
    when: [
        (re.compile(old.replace("{{value}}", RE.value.pattern)), new) for old, new in pairs.items()
    ]
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


@lru_cache(maxsize=8192)
def amounts(text: str) -> frozenset[tuple[float, str]]:
    """The numbers of canonical text with their units; the unit is "" where none follows."""
    return frozenset((float(number), unit) for number, unit in RE.amount.findall(text))


@lru_cache(maxsize=8192)
def canonical(text: str) -> str:
    """The normalised lines, without list marks and markup: characters, words, numbers, units and limits in one form."""
    text = RE.gap.sub("、", RE.markup.sub("", RE.list_mark.sub("", RE.unseen.sub("", text))))
    text = _opencc().convert(
        text.encode("utf-8", "replace").decode()
    )  # halves of surrogate pairs are no text
    text = one_word(unicodedata.normalize("NFKC", text).lower())
    text = _rewritten("\n".join(map(normalise, text.splitlines())), "before")
    text = RE.range.sub(r"\1\3~\2\3", RE.numeral.sub(_digits, text))
    text = RE.quantity.sub(lambda match: _converted(*match.groups()), text)
    text = RE.summed.sub(lambda match: f"{float(match[1]) + float(match[2]):g}小时", text)
    text = RE.every.sub(_a_day, text)
    return one_word(_rewritten(text, "after"))


# Libraries that are slow to start, each started when it is first needed.
_opencc = cache(lambda: import_module("opencc").OpenCC("t2s"))
_pint = cache(lambda: import_module("pint").UnitRegistry())


@cache
def _jieba() -> Any:
    jieba: Any = import_module("jieba")
    jieba.setLogLevel("CRITICAL")
    cutter = jieba.Tokenizer()
    cutter.tmp_dir = str(
        Path(jieba.__file__).parent
    )  # its cache is unmarshalled: not from a folder of everybody's
    for word in (*_synonyms().values(), *DATA["field"].split()):
        cutter.add_word(word)
    return cutter


@lru_cache(maxsize=8192)
def cut(text: str) -> tuple[tuple[str, float], ...]:
    """The words of a text, and how much each says, from COMMON (增加) to 1 (粉尘), by how often it is written."""
    words = [word for word in _jieba().cut(text) if word.strip()]
    rarity = ((10 - math.log(_jieba().FREQ.get(word, 0) + 1)) / 3 for word in words)
    return tuple(
        (word, min(1.0, max(COMMON, rare))) for word, rare in zip(words, rarity, strict=True)
    )


@cache
def _synonyms() -> dict[str, str]:
    """Every expression of synonyms.tsv -> the first of its group."""
    lines = (HERE / "synonyms.tsv").read_text(encoding="utf-8").splitlines()
    groups = (
        unicodedata.normalize("NFKC", line).lower().split("\t")
        for line in lines
        if line[:1] not in ("", "#")
    )
    return {word: group[0] for group in groups for word in group}


@cache
def terms() -> frozenset[str]:
    """The terms of the field: the first expression of each group."""
    return frozenset(_synonyms().values())


@lru_cache(maxsize=8192)
def one_word(text: str) -> str:
    """The text with every expression of synonyms.tsv as the first of its group, the longest one at each place."""
    known, parts, place = _synonyms(), [], 0
    while place < len(text):
        sizes = range(_longest().get(text[place], 0), 0, -1)
        size = next(
            (
                size
                for size in sizes
                if text[place : place + size] in known and _is_whole(text, place, size)
            ),
            1,
        )
        parts.append(known.get(text[place : place + size], text[place]))
        place += size
    return "".join(parts)


@cache
def _longest() -> dict[str, int]:
    """The length of the longest expression by its first sign."""
    return {word[0]: len(word) for word in sorted(_synonyms(), key=len)}


def _is_whole(text: str, start: int, size: int) -> bool:
    """Whether an expression in ASCII letters does not stand inside another word."""
    around = text[max(0, start - 1) : start] + text[start + size : start + size + 1]
    return not text[start].isascii() or not any(
        sign.isascii() and sign.isalnum() for sign in around
    )


def _rewritten(text: str, when: str) -> str:
    return reduce(lambda done, rule: rule[0].sub(rule[1], done), REWRITES[when], text)


def _digits(match: re.Match[str]) -> str:
    """A Chinese numeral in digits; "两三" is "2~3"; "一" as an article stays."""
    value, text = import_module("cn2an").cn2an, match.group()
    if text == "一" and RE.article.match(match.string, match.start()):
        return text
    if re.fullmatch("[一二两三四五六七八九]{2}", text):
        return "~".join(str(value(sign, "smart")) for sign in text)
    try:
        return f"{value(text, 'smart'):g}"
    except ValueError:
        return text  # no numeral after all: "十百"


def _a_day(match: re.Match[str]) -> str:
    """How often a day "every 6 to 8 hours" is; unchanged where that is no whole number or no rate."""
    hours = [int(number) for number in match.groups()[:2] if number]
    if any(not 4 <= number <= 24 or 24 % number for number in hours) or not (
        match[0][0] in "每给服用" or match[3]
    ):
        return match.group()
    times = sorted({24 // number for number in hours})
    return "每日" + ("" if times == [1] and not match[3] else "~".join(map(str, times)) + "次")


@lru_cache(maxsize=4096)
def _converted(number: str, unit: str) -> str:
    quantity = _pint().Quantity(float(number), UNITS[unit])
    kept, name = next(pair for pair in KEPT.items() if quantity.is_compatible_with(pair[1]))
    return f"{float(f'{quantity.to(name).magnitude:.4g}'):.15g}{kept}"
