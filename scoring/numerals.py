"""Numbers and quantities of a text in one form: digits, and one unit for every kind of quantity.

    in_digits("一天两次，每次半片")      # "1天2次，每次0.5片"
    in_units("1克,2周")                 # "1000毫克,336小时"

cn2an reads Chinese numerals, and pint gives the factors of units. Both functions expect NFKC text
in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

# Every spelling of a unit, then its name in pint; spellings of one unit stand together.
_SPELLINGS = """
微克/μg/ug/mcg/micrograms/microgram:microgram 毫克/mg/milligrams/milligram:milligram 克/g/grams/gram:gram
千克/公斤/kg/kilograms/kilogram:kilogram 毫升/ml/cc/milliliters/milliliter/millilitres/millilitre:milliliter
升/l/liters/liter/litres/litre:liter °c/摄氏度/度:degC °f/华氏度:degF 秒/秒钟/seconds/second:second
分钟/min/minutes/minute:minute 个小时/小时/个钟头/钟头/h/hours/hour:hour 天/日/days/day:day
周/个星期/星期/个礼拜/礼拜/weeks/week:week 个月/月/months/month:month 年/years/year:year
厘米/公分/cm:centimeter 毫米/mm:millimeter 毫米汞柱/mmhg:mmHg kpa:kilopascal
"""
_GROUPS = [(many.split("/"), name) for many, name in (one.split(":") for one in _SPELLINGS.split())]
UNITS = {spelling: name for many, name in _GROUPS for spelling in many}
_FIRST = {spelling: many[0] for many, _ in _GROUPS for spelling in many}
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
_COUNTED = "[片丸粒袋滴支瓶包勺张贴枚颗杯次岁例种]"  # measure words that a number stands before
_BEHIND = r"(?![a-z期夜围])"  # 周期, 周围 and 日夜 are no quantities
_DECIMAL = r"\d{1,12}(?:\.\d{1,6})?"

_ENGLISH = {
    word: str(number)
    for number, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1
    )
} | {"once": "1 times", "twice": "2 times"}
_ENGLISH_NUMERAL = re.compile(rf"(?<![a-z-])(?:{'|'.join(_ENGLISH)})(?![a-z-])")
_NUMERAL = re.compile(
    "[零〇一二两三四五六七八九十百千万亿壹贰叁肆伍陆柒捌玖拾佰仟]+(?:点[零〇一二三四五六七八九]+)?"
)
_THOUSANDS = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([千万亿])(?![克米瓦卡])")
TIMES = {"千": 1e3, "万": 1e4, "亿": 1e8}
_BELOW_ZERO = re.compile(r"(?:零下(?:摄氏)?|(?<!正)负)(?=[\d一二两三四五六七八九十])")
_PART_OF_THOUSAND = re.compile(r"千分之(\d{1,3}(?:\.\d{1,6})?)|(\d{1,3}(?:\.\d{1,6})?)‰")
_FRACTION = re.compile(rf"(?<![\d./])(?:(\d{{1,3}})又)?([1-9])/([2-9]|10)(?={_UNIT}|{_COUNTED})")
_HALF = re.compile(rf"(?<!\d)半(?={_UNIT}|{_COUNTED})")
_AND_A_HALF = re.compile(
    rf"(\d{{1,3}})(?:个半(?={_UNIT})|({_UNIT}|{_COUNTED})半(?!夜|{_UNIT}|{_COUNTED}))"
)

# As in scoring.text, patterns begin with the signs they match and look back afterwards.
_RANGE_SIGN = re.compile(rf"(\d(?:{_UNIT}|{_COUNTED})?) ?(?:[至到~-]|—+) ?(?=-?\d)")
_RANGE = re.compile(rf"({_DECIMAL})(?:{_UNIT})?~(-?{_DECIMAL})({_UNIT}){_BEHIND}")
_COUNTED_RANGE = re.compile(rf"(\d)({_COUNTED})~({_DECIMAL})\2")
_RATE = re.compile(r"[每1全](?<![\d.].)个?(日|天|周|星期|礼拜|月|分钟|小时)(?=\d+(?:~\d+)?次)")
_RATES = {"天": "日", "星期": "周", "礼拜": "周"}
_EACH_TIME = re.compile(r"[1单](?<![\d.日天周月时年].)次(?=\d)")
_PER = re.compile(rf"/({_UNIT}){_BEHIND}")
_QUANTITY = re.compile(
    rf"([-\d](?<![\d.].)(?:(?<=-)\d{{1,12}}|(?<=\d)\d{{0,11}})(?:\.\d{{1,6}})?)({_UNIT}){_BEHIND}"
)
_SUM = re.compile(rf"(\d(?<![\d.~-].)\d{{0,11}}(?:\.\d{{1,6}})?)小时({_DECIMAL})小时")
_PLAIN_NUMBER = re.compile(r"\d(?<![\d.a-z].)\d{0,14}\.\d{1,9}(?![\d.])")


def in_digits(text: str) -> str:
    """Return the text with its numerals and fractions as digits: "三分之二" is "2/3", "一片半" is
    "1.5片".
    """
    return _rewritten(text, DIGITS)


def in_units(text: str) -> str:
    """Return the text with quantities and ranges in the units of KEPT, and rates in one form."""
    return _rewritten(text, QUANTITIES)


def _rewritten(text: str, steps: Sequence[Step]) -> str:
    """Apply the steps of which the text has a sign; most texts have few, and a search costs."""
    for signs, pattern, new in steps:
        if not signs or any(sign in text for sign in signs):
            text = pattern.sub(new, text)
    return text


def english_in_digits(text: str) -> str:
    """Return the text with English numerals up to ten as digits: "three times" is "3 times"."""
    return _ENGLISH_NUMERAL.sub(lambda match: _ENGLISH[match.group()], text)


def _digits(match: re.Match[str]) -> str:
    """Return a Chinese numeral in digits: "两三" is "2~3". A text that is not a numeral
    ("十百") stays.
    """
    text = match.group()
    if re.fullmatch("[一二两三四五六七八九]{2}", text):
        return "~".join(_digit(sign) for sign in text)
    try:
        return _digit(text) if text not in TIMES else text
    except (ValueError, KeyError):  # cn2an's for "十百", and for "二十零"
        return text


@cache
def _digit(sign: str) -> str:
    return f"{import_module('cn2an').cn2an(sign, 'smart'):.15g}"


def _in_full(match: re.Match[str]) -> str:
    return f"{float(match[1]) * TIMES[match[2]]:.15g}"


def _percent(match: re.Match[str]) -> str:
    return f"{float(match[1] or match[2]) / 10:.9g}%"


def _rate(match: re.Match[str]) -> str:
    return f"每{_RATES.get(match[1], match[1])}"


def _first_spelling(match: re.Match[str]) -> str:
    return f"/{_FIRST[match[1]]}"


def _shortest(match: re.Match[str]) -> str:
    return f"{float(match.group()):.12g}"


def _decimal(match: re.Match[str]) -> str:
    """Return a fraction before a measure word as a decimal: "1又1/2" is "1.5", and "3/2" stays."""
    whole, above, below = int(match[1] or 0), int(match[2]), int(match[3])
    return f"{whole + above / below:.12g}" if above < below else match.group()


def _added(match: re.Match[str]) -> str:
    """Return hours and smaller parts of them as one number; a pair whose second is not smaller
    stays.
    """
    first, second = float(match[1]), float(match[2])
    return f"{_seven_digits(first + second)}小时" if second < first else match.group()


@cache
def _line(unit: str) -> tuple[float, float, str]:
    """Return factor and offset from a unit, given by its spelling, to the unit of KEPT, and that
    unit.

    The result is cached, because pint is slow.
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


def _converted(match: re.Match[str]) -> str:
    """Return a quantity in the unit of KEPT."""
    number, unit = match.groups()
    factor, offset, kept = _line(unit)
    return f"{_seven_digits(float(number) * factor + offset)}{kept}"


def _seven_digits(value: float) -> str:
    """Return the number with seven digits, because kilograms and months do not come out even."""
    return f"{float(f'{value:.7g}'):.15g}"


Step = tuple[Sequence[str], re.Pattern[str], str | Callable[[re.Match[str]], str]]
DIGITS: tuple[Step, ...] = (
    (",", re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), ""),
    (".", re.compile(r"(?<![0-9a-z.])\.(?=\d)"), "0."),
    (("零下", "负"), _BELOW_ZERO, "-"),
    ("", _NUMERAL, _digits),
    ("千万亿", _THOUSANDS, _in_full),
    ("百", re.compile(r"百分之(\d+(?:\.\d+)?)"), r"\1%"),
    ("千‰", _PART_OF_THOUSAND, _percent),
    ("之", re.compile(r"(\d{1,6})分之(\d{1,6})"), r"\2/\1"),
    ("/", _FRACTION, _decimal),
    ("半", _AND_A_HALF, r"\1.5\2"),
    ("半", _HALF, "0.5"),
)
QUANTITIES: tuple[Step, ...] = (
    ("分", re.compile(r"(?<=\d)(?:小时|h)(\d{1,2})分(?![钟之])"), r"小时\1分钟"),
    ("至到~-—", _RANGE_SIGN, r"\1~"),
    ("~", _COUNTED_RANGE, r"\1~\3\2"),
    ("次", _RATE, _rate),
    ("次", _EACH_TIME, "每次"),
    ("~", _RANGE, r"\1\3~\2\3"),
    ("/", _PER, _first_spelling),
    ("", _QUANTITY, _converted),
    ("时", _SUM, _added),
    (".", _PLAIN_NUMBER, _shortest),
)
