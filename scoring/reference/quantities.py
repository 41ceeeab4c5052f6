"""Numbers and units of medical text in one form, so that equal doses compare equal however they are written.

canonical("每次0.5克，每天两次")          # "每次500毫克,每日2次"
canonical("不超过25℃")                    # "25度以下"
numbers(canonical("共三十七种"))           # {37.0}

Masses become milligrams, volumes millilitres, weeks days; Chinese numerals before a measure word become digits.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from scoring.reference.text import normalise

# Unit as written (normalised) -> the unit kept, and how many of it one is.
UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("微克", "μg", "ug", "mcg"), ("毫克", 0.001)),
    **dict.fromkeys(("毫克", "mg"), ("毫克", 1.0)),
    **dict.fromkeys(("克", "g"), ("毫克", 1000.0)),
    **dict.fromkeys(("千克", "公斤", "kg"), ("毫克", 1e6)),
    **dict.fromkeys(("毫升", "ml"), ("毫升", 1.0)),
    **dict.fromkeys(("升", "l"), ("毫升", 1000.0)),
    **dict.fromkeys(("°c", "摄氏度", "度"), ("度", 1.0)),
    **dict.fromkeys(("分钟", "min"), ("分钟", 1.0)),
    **dict.fromkeys(("个小时", "小时", "h"), ("小时", 1.0)),
    **dict.fromkeys(("天", "日"), ("天", 1.0)),
    **dict.fromkeys(("周", "星期", "个星期"), ("天", 7.0)),
    **dict.fromkeys(("毫米汞柱", "mmhg"), ("mmhg", 1.0)),
    "kpa": ("mmhg", 7.5),
}
QUANTITY = re.compile(
    r"(?<![\d.])(\d{1,12}(?:\.\d{1,6})?)("
    + "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
    + r")(?![a-z期夜])"
)

# What a Chinese numeral must stand before to be a number: "三次", not "三七".
MEASURES = r"次|个?小时|分钟|天|日|周|个?星期|个?月|年|岁|片|粒|丸|袋|支|瓶|包|滴|毫克|克|毫升|升|种|个|项|例|名|度|倍"
NUMERAL = re.compile(rf"[零〇一二两三四五六七八九十百千]{{1,9}}(?={MEASURES})")
# "一种", "一个" are articles more often than counts.
ARTICLE = re.compile(r"一(?=[种个项例名])")

LIST_MARK = re.compile(r"^[ \t]*(?:\d{1,2}[.、)）](?!\d)|[-*•+][ \t])", re.MULTILINE)
_VALUE = r"\d[\d./]{0,12}(?:" + "|".join({unit for unit, _ in UNITS.values()}) + r")?"
LIMITS = (
    (re.compile(rf"(?:≤|<=|(?:不要|不得|不能|别|勿|不)超过|不高于|低于|小于)({_VALUE})"), r"\1以下"),
    (re.compile(rf"(?:≥|>=|不低于|不少于|达到或超过|高于|超过|大于)({_VALUE})"), r"\1以上"),
)
SYNONYMS = (
    (re.compile(r"一起(?:吃|服用?|用|喝)|(?:同时|一同)服用?|合用|联用|并用"), "同服"),
    (re.compile(r"间隔|隔开|相隔"), "隔"),
    (re.compile(r"(?<=食欲)(?:下降|减少|不振)"), "减退"),
)
RATES = (
    (re.compile(r"(?<![\d.])(?:每|一|1)(?:日|天)"), "每日"),
    (re.compile(r"(?<=每日)一次"), "1次"),
    (re.compile(r"(?<!每日)(?<![\d.])(?:一|1|单)次(?=[^\d,;。]{0,3}\d)"), "每次"),
)


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
    text = "\n".join(normalise(line) for line in LIST_MARK.sub("", text).splitlines())
    for pattern, written in (*SYNONYMS, *RATES):
        text = pattern.sub(written, text)
    text = NUMERAL.sub(_digits, text)
    text = QUANTITY.sub(_in_base_unit, text)
    for pattern, written in LIMITS:
        text = pattern.sub(written, text)
    return text


def _digits(match: re.Match[str]) -> str:
    text = match.group()
    return text if text == "一" and ARTICLE.match(match.string, match.start()) else str(chinese_number(text))


def _in_base_unit(match: re.Match[str]) -> str:
    unit, factor = UNITS[match.group(2)]
    return f"{round(float(match.group(1)) * factor, 6):.15g}{unit}"
