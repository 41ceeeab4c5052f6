"""Numerals of a text as digits.

    in_digits("一天两次，每次半片")           # "1天2次，每次0.5片"
    in_digits("三分之二")                    # "2/3"
    in_digits("心功能iii级")                 # "心功能3级"
    english_in_digits("thirty-seven")       # "37"

cn2an reads Chinese numerals. The functions expect NFKC text in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module

from sql_agent.judge.steps import Step, rewritten
from sql_agent.judge.units import COUNTED, UNIT

LONGEST = 20  # characters of a numeral

LATIN = re.compile("[a-z]")
_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_VALUE = {word: number for number, word in enumerate(_ONES)}
_VALUE |= {word: 10 * number for number, word in enumerate(_TENS, 2)}
_SCALE = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}

_SMALL = rf"(?:(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(_ONES[1:10])}))?|{'|'.join(_ONES[::-1])})"
_BELOW_1000 = rf"(?:(?:a|{'|'.join(_ONES[1:10])}) hundred(?: (?:and )?{_SMALL})?|{_SMALL})"
_ENGLISH = re.compile(
    rf"(?<![a-z-])(?:(?:{_BELOW_1000} million )?(?:(?:{_BELOW_1000}|a) thousand(?: (?:and )?{_BELOW_1000})?"
    rf"|{_BELOW_1000})(?: (?:million|billion))?)((?: point(?: (?:{'|'.join(_ONES[:10])}))+)?)(?![a-z-])"
)
_SCALED = re.compile(
    r"(?<![\d.])(\d{1,9}(?:\.\d{1,6})?) ?(hundred|thousand|million|billion)(?![a-z])"
)
_HALF_WORD = r"(?:an?|1)?[ -]?half(?: an?)?(?![a-z-])"
_ORDINALS = {
    "first": "1st", "second": "2nd", "third": "3rd", "fourth": "4th", "fifth": "5th", "sixth": "6th",
    "seventh": "7th", "eighth": "8th", "ninth": "9th", "tenth": "10th",
}  # fmt: skip
_ORDINAL = re.compile(rf"(?<![a-z\d-])(?<!\d )(?:{'|'.join(_ORDINALS)})(?![a-z-])")
_PARTS = {"third": 3, "quarter": 4, "fourth": 4, "fifth": 5}
_OF_PARTS = re.compile(
    r"(?<![a-z\d])(a|[1-9])[ -](third|quarter|fourth|fifth)s?(?= of| an?(?![a-z])|[^ a-z]|$)"
)
_ONCE = re.compile("(?<![a-z])once(?= (?:a|per|each|every|daily|weekly|monthly)(?![a-z]))")

_CHINESE = re.compile(
    "[零〇一二两三四五六七八九十百千万亿壹贰叁肆伍陆柒捌玖拾佰仟]+(?:点[零〇一二三四五六七八九]+)?"
)
_TWO = re.compile("[一二两三四五六七八九]{2}")
_THOUSANDS = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([百千]?万|[千亿])(?![克米瓦卡帕焦])")
TIMES = {"千": 1e3, "万": 1e4, "百万": 1e6, "千万": 1e7, "亿": 1e8}
_BELOW_ZERO = re.compile(r"(?:零下(?:摄氏)?|(?<!正)负)(?=[\d一二两三四五六七八九十])")
_SMALL_PART = re.compile(r"(百万|[千万])分之(\d{1,3}(?:\.\d{1,6})?)|(\d{1,3}(?:\.\d{1,6})?)‰")
_TAKEN = "tab|cap|pill|tea|table|spoon|cup|drop|dose"
_FRACTION = re.compile(
    rf"(?<![\d./])(?:(\d{{1,3}})[又 ])?([1-9])/([2-9]|10)(?={UNIT}|{COUNTED}| ?(?:{_TAKEN})| ?of(?![a-z]))"
)
_PEOPLE = "(?:患者|病人|病例|人群|儿童|孕妇)"
_OF_PEOPLE = re.compile(rf"(?<![\d./])([1-9])/([2-9]|10)(?=的?{_PEOPLE})")
_OF_ALL = re.compile(r"(?<=[占的])([1-9])/([2-9]|10)(?=$|[,;。])")
_HALF = re.compile(rf"(?<!\d)半(?={UNIT}|{COUNTED})")
_AND_A_HALF = re.compile(
    rf"(\d{{1,3}})(?:个半(?={UNIT})|({UNIT}|{COUNTED})半(?!夜|{UNIT}|{COUNTED}))"
)
_POWER = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?[x×*] ?10(?:\^|的)(\d{1,2})(?:次方)?")
_ROMAN = {
    "i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7", "viii": "8", "ix": "9", "x": "10",
}  # fmt: skip
_ROMANS = r"(?:viii|vii|vi|iv|ix|iii|ii|i|v|x)(?![a-z]{2})"
_ROMAN_RANK = re.compile(
    rf"(?<![a-z]){_ROMANS}[abc]?(?:[-~至到、/和或]{_ROMANS}[abc]?)*(?=[级期型度类])"
    rf"|(?<![a-z])(?:grade|stage|class|phase|type|level) {_ROMANS}[abc]?(?![a-z])"
)


def in_digits(text: str) -> str:
    """Return the text with its numerals and fractions as digits: "三分之二" is "2/3", "一片半" is "1.5片"."""
    return rewritten(text, DIGITS)


def english_in_digits(text: str) -> str:
    """Return the text with English numerals as digits: "thirty-seven" is "37", "twice" "2 times"."""
    return rewritten(text, ENGLISH) if LATIN.search(text) else text


def _english(match: re.Match[str]) -> str:
    """Return an English numeral in digits."""
    words = re.split("[ -]", match.group().removesuffix(match[1]))
    total = part = 0
    for word in words:
        if word in _SCALE:
            part = max(part, 1) * _SCALE[word]
            total, part = (total, part) if word == "hundred" else (total + part, 0)
        else:
            part += _VALUE.get(word, 0)  # "and", and the "a" of "a hundred"
    behind = "".join(str(_VALUE[word]) for word in match[1].split()[1:])
    return f"{total + part}.{behind}" if behind else str(total + part)


def _one(match: re.Match[str]) -> str:
    return f"{_VALUE[match[1]]} "


def _scaled(match: re.Match[str]) -> str:
    return f"{float(match[1]) * _SCALE[match[2]]:.15g}"


def _ordinal(match: re.Match[str]) -> str:
    return _ORDINALS[match.group()]


def _of_parts(match: re.Match[str]) -> str:
    return f"{match[1].replace('a', '1')}/{_PARTS[match[2]]}"


def _digits(match: re.Match[str]) -> str:
    """Return a Chinese numeral in digits; "两三" is "2~3", and what is no numeral ("十百") stays."""
    text = match.group()
    if _TWO.fullmatch(text):
        sign = "" if match.string[: match.start()].endswith("米") else "~"  # 1米75
        return sign.join(map(_digit, text))
    if text in TIMES or len(text) > LONGEST:
        return text
    try:
        return _digit(text)
    except (ValueError, KeyError):  # cn2an's for "十百", and for "二十零"
        return text


@cache
def _cn2an() -> Callable[[str, str], float]:
    return import_module("cn2an").cn2an


def _digit(sign: str) -> str:
    return f"{_cn2an()(sign, 'smart'):.15g}"


def _in_full(match: re.Match[str]) -> str:
    return f"{float(match[1]) * TIMES[match[2]]:.15g}"


def _power(match: re.Match[str]) -> str:
    return f"{float(match[1]) * 10 ** int(match[2]):.15g}" if int(match[2]) < 15 else match.group()


def _percent(match: re.Match[str]) -> str:
    parts = TIMES[match[1] or "千"]
    return f"{100 * float(match[2] or match[3]) / parts:.9g}%"


def _decimal(match: re.Match[str]) -> str:
    """Return a fraction before a measure word as a decimal: "1又1/2" is "1.5", and "3/2" stays."""
    whole, above, below = int(match[1] or 0), int(match[2]), int(match[3])
    return f"{whole + above / below:.12g}" if above < below else match.group()


def _tenths(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2] or 0}%"


def _of_thousands(match: re.Match[str]) -> str:
    return f"{100 * int(match[1]) / int(match[2]):.9g}%"


def _share(match: re.Match[str]) -> str:
    """Return a share of people in percent, where it is a whole number: 1/4 is 25%, and 1/3 stays."""
    above, below = int(match[1]), int(match[2])
    whole = above < below and 100 * above % below == 0
    return f"{100 * above // below}%" if whole else match.group()


def _rank(match: re.Match[str]) -> str:
    """Roman numerals of a grade in digits: "i~iib期" is "1~2b期"."""
    return re.sub(rf"(?<![a-z]){_ROMANS}", lambda one: _ROMAN[one.group()], match.group())


ENGLISH: tuple[Step, ...] = (
    (["once"], _ONCE, "1 times"),
    (["twice"], re.compile(r"(?<![a-z])twice(?![a-z])"), "2 times"),
    (["thrice"], re.compile(r"(?<![a-z])thrice(?![a-z])"), "3 times"),
    ([*_ONES, *_TENS, "hundred"], _ENGLISH, _english),
    (list(_SCALE), _SCALED, _scaled),
    (
        list(_PARTS),
        re.compile(rf"(?<![a-z-])({'|'.join(_ONES[1:10])})-(?={'|'.join(_PARTS)})"),
        _one,
    ),
    (["in", "out of"], re.compile(r"(?<=\d) (?:in|out of)(?: every)? (?=\d)"), "/"),
    (["half"], re.compile(rf"(\d) and {_HALF_WORD}"), r"\1.5"),
    (["half"], re.compile(rf"(?<![a-z]){_HALF_WORD}"), "0.5"),
    (list(_PARTS), _OF_PARTS, _of_parts),
    (list(_ORDINALS), _ORDINAL, _ordinal),
    (["per cent", "percent"], re.compile(r"(?<=\d) ?per ?cent(?![a-z])"), "%"),
)
DIGITS: tuple[Step, ...] = (
    (",", re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), ""),
    (" 000", re.compile(r"(?<=\d) (?=000(?!\d))"), ""),
    (".", re.compile(r"(?<![0-9a-z.])\.(?=\d)"), "0."),
    (("零下", "负"), _BELOW_ZERO, "-"),
    ("点", re.compile("(?<=[一二三四五六七八九十])点(?=[半整钟]|[二三四五]?十[一二三四五六七八九]?分)"), "时"),
    ("", _CHINESE, _digits),
    ("千万亿", _THOUSANDS, _in_full),
    ("百", re.compile(r"百分之(\d+(?:\.\d+)?)"), r"\1%"),
    (("千分", "万分", "‰"), _SMALL_PART, _percent),
    ("成", re.compile(rf"(?<![\d.])([1-9])成([1-9]?)(?=$|[^一-鿿]|的|左右|以[上下]|{_PEOPLE})"), _tenths),
    ("之", re.compile(r"(\d{1,6})分之(\d{1,6})"), r"\2/\1"),
    ("/", _OF_PEOPLE, _share),
    ("占", _OF_ALL, _share),
    ("半", re.compile(rf"(?<![\d.])1半(?=的|左右|以[上下]|{_PEOPLE})"), "50%"),
    ("/", re.compile(r"(?<![\d./])(\d\d?)/(10000{0,3})(?![\d./])"), _of_thousands),
    ("/", _FRACTION, _decimal),
    ("半", _AND_A_HALF, r"\1.5\2"),
    ("半", _HALF, "0.5"),
    (("10^", "10的"), _POWER, _power),
    ("ivx", _ROMAN_RANK, _rank),
)  # fmt: skip
