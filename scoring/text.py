"""Forms of a Chinese or English text that change no meaning, so that what says the same is written
the same.

    canonical("每次０．５克，每天兩次")      # "每次500毫克,每天2次"
    words_only("避光, 密封。")              # "避光密封"

OpenCC writes traditional characters as simplified ones, cn2an numerals as digits, and pint gives
the factors of units.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

# Every spelling of a unit, then its name in pint; spellings of one unit stand together.
_SPELLINGS = """
微克/μg/ug/mcg:microgram 毫克/mg:milligram 克/g:gram 千克/公斤/kg:kilogram 毫升/ml:milliliter 升/l:liter
°c/摄氏度/度:degC °f/华氏度:degF 秒/秒钟:second 分钟/min:minute 个小时/小时/个钟头/钟头/h:hour 天/日:day
周/个星期/星期/个礼拜/礼拜:week 个月/月:month 年:year 厘米/cm:centimeter 毫米/mm:millimeter 毫米汞柱/mmhg:mmHg
kpa:kilopascal
"""
UNITS = {
    spelling: name
    for many, name in (entry.split(":") for entry in _SPELLINGS.split())
    for spelling in many.split("/")
}
# What quantities are written in: 2周 and 14天 both become 336小时.
KEPT = {
    "毫克": "milligram",
    "毫升": "milliliter",
    "度": "degC",
    "小时": "hour",
    "mmhg": "mmHg",
    "毫米": "millimeter",
}

_UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_BEHIND = r"(?![a-z期夜围])"  # 周期, 周围 and 日夜 are no quantities
UNSEEN = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
MARKUP = re.compile(r"</?[a-zA-Z][^<>]{0,400}>|&(?:nbsp|lt|gt|amp);|[*#`]+")
LIST_MARK = re.compile(
    r"(?m)^[ \t>]*(?:\d{1,2}[.、)）](?!\d)|[-•+][ \t])|(?<=[。;；:：])[ \t]*\d{1,2}[.、)）](?!\d)"
    r"|[（(]\d{1,2}[)）]|[①-⑳]"
)
SEPARATOR = re.compile(
    r"""(?<!\d)[.,:]|[.,:](?!\d)|[;!?、。·()\[\]{}"'“”‘’《》【】「」『』\n|…]|—+|(?<![0-9a-z])/|/(?![0-9a-z])| - """
)
"""What stands between the pieces of a text; a point or a comma inside a number does not."""

_NOT_WORD = re.compile(r"(?:[^\w.%]|_|(?<!\d)\.|\.(?!\d))+")
_NUMBER = re.compile(r"\d{1,30}(?:\.\d{1,30})?")
_NUMERAL = re.compile(
    "[零〇一二两三四五六七八九十百千万壹贰叁肆伍陆柒捌玖拾佰仟]+(?:点[零一二三四五六七八九]+)?"
)
_THOUSANDS = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([千万亿])(?![克米瓦卡])")
_HALF = "(?:半|1⁄2)"
TIMES = {"千": 1e3, "万": 1e4, "亿": 1e8}
_BELOW_ZERO = re.compile(r"零下(?:摄氏)?(?=[\d一二两三四五六七八九十])")
_QUANTITY = re.compile(rf"(?<![\d.])(-?)(\d{{1,12}}(?:\.\d{{1,6}})?)({_UNIT}){_BEHIND}")
_RANGE = re.compile(
    rf"(\d{{1,12}}(?:\.\d{{1,6}})?)(?:{_UNIT})?~(-?\d{{1,12}}(?:\.\d{{1,6}})?)({_UNIT}){_BEHIND}"
)
_PLAIN_NUMBER = re.compile(r"(?<![\d.a-z])\d{1,15}\.\d{1,9}(?![\d.])")
_CHINESE_GAP = re.compile(r"(?<=[一-鿿]) +(?=[一-鿿])")
_NEEDLESS_GAP = re.compile(r"(?<=[^\x00-\x7f]) +| +(?=[^\x00-\x7f])|(?<=\d) +(?=[a-z%~])")


def normalise(text: str) -> str:
    """The text in NFKC form, lower case, without white space and unseen signs: "１５ ｍｇ" and "15mg"
    become equal.
    """
    return "".join(unicodedata.normalize("NFKC", UNSEEN.sub("", text)).lower().split())


@lru_cache(maxsize=8192)
def words_only(text: str) -> str:
    """The normalised text's letters, digits and Chinese characters; "" when there are none."""
    return _NOT_WORD.sub("", normalise(text)).replace("%", "")


@lru_cache(maxsize=8192)
def numbers(text: str) -> frozenset[float]:
    """The numbers written in digits, each once."""
    return frozenset(map(float, _NUMBER.findall(normalise(text))))


def fragments(text: str) -> list[str]:
    """The text's parts between punctuation, as words only: what can be right or wrong by itself."""
    parts = map(words_only, SEPARATOR.split(unicodedata.normalize("NFKC", text)))
    return [part for part in parts if part]


@lru_cache(maxsize=8192)
def canonical(text: str) -> str:
    """The text without markup and list marks, its characters, numbers and units in one form; its
    punctuation stays.
    """
    text = MARKUP.sub("", LIST_MARK.sub("", UNSEEN.sub("", text)))
    text = _opencc().convert(text.encode("utf-8", "replace").decode())  # no halves of surrogates
    text = unicodedata.normalize("NFKC", text).lower()
    text = _CHINESE_GAP.sub(",", re.sub(r"[ \t\u3000]+", " ", text))
    text = _NEEDLESS_GAP.sub("", text)
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    text = _THOUSANDS.sub(lambda match: f"{float(match[1]) * TIMES[match[2]]:.15g}", text)
    text = _NUMERAL.sub(_digits, _BELOW_ZERO.sub("-", text))
    text = re.sub(r"百分之(\d+(?:\.\d+)?)", r"\1%", text)
    text = re.sub(rf"{_HALF}(?={_UNIT}|[片袋粒支包瓶丸勺])", "0.5", text)
    text = text.replace("−", "-").replace("–", "-")
    text = re.sub(rf"(?<=\d)((?:{_UNIT})?)[至到~-](?=-?\d)", r"\1~", text)
    text = re.sub(r"(?<![\d.])(?:每|1|全)[日天](?=\d+(?:~\d+)?次)", "每日", text)
    text = re.sub(r"(?<![\d.日天周月时年])(?:1|单)次(?=\d)", "每次", text)
    text = _RANGE.sub(r"\1\3~\2\3", text)
    text = _QUANTITY.sub(lambda match: _converted(*match.groups()), text)
    return _PLAIN_NUMBER.sub(lambda match: f"{float(match.group()):.12g}", text)


@cache
def _opencc() -> Any:
    """OpenCC's converter, started when it is first needed."""
    return import_module("opencc").OpenCC("t2s")


def _digits(match: re.Match[str]) -> str:
    """A Chinese numeral in digits; "两三" is "2~3", and what is no numeral ("十百") stays."""
    text = match.group()
    if re.fullmatch("[一二两三四五六七八九]{2}", text):
        return "~".join(_digit(sign) for sign in text)
    try:
        return f"{import_module('cn2an').cn2an(text, 'smart'):g}" if text != "万" else text
    except ValueError:
        return text


@cache
def _digit(sign: str) -> str:
    return str(import_module("cn2an").cn2an(sign, "smart"))


@cache
def _line(unit: str) -> tuple[float, float, str]:
    """Of a spelling: factor and offset into the unit that is kept, and that unit.

    Pint is slow, so it is asked once.
    """
    quantity = _pint().Quantity
    kept, name = next(
        pair for pair in KEPT.items() if quantity(1.0, UNITS[unit]).is_compatible_with(pair[1])
    )
    offset = quantity(0.0, UNITS[unit]).to(name).magnitude
    return quantity(1.0, UNITS[unit]).to(name).magnitude - offset, offset, kept


@cache
def _pint() -> Any:
    return import_module("pint").UnitRegistry()


def _converted(sign: str, number: str, unit: str) -> str:
    """The quantity in the unit that is kept, with seven digits: kilograms and months do not come
    out even.
    """
    factor, offset, kept = _line(unit)
    value = float(sign + number) * factor + offset
    return f"{float(f'{value:.7g}'):.15g}{kept}"
