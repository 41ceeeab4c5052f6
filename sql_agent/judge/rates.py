"""How often and how much at a time: rates in one form.

    "1日3次", "3次/天", "3 times a day", "tid"      # all "每日3次"
    "q8h", "8小时1次", "every 8 hours"             # all "每8小时1次"
    "每日4克", "4g daily"                          # both "4克/天", when sql_agent.judge.units has read them

The steps are a part of sql_agent.judge.units.
"""

from __future__ import annotations

import re

from sql_agent.judge.steps import Step

_TIMES = r"\d{1,3}(?:~\d{1,3})?"
_AMOUNT = r"\d{1,6}(?:\.\d{1,4})?(?:~\d{1,6}(?:\.\d{1,4})?)?"
_DOSE = "(?:毫克|微克|克|mg|mcg|μg|g|毫升|升|ml|l|kcal|千卡|国际单位|单位|iu|u)(?![a-z])"
TAKEN = "片丸粒袋滴支瓶包勺张贴枚颗杯"
"""Measure words of what is taken."""
_PERIOD = "天|日|周|星期|礼拜|月|年|分钟|小时"
_ENGLISH_PERIOD = "days|day|weeks|week|months|month|hours|hour|years|year|minutes|minute|min|d|h"
_CHINESE = {
    "d": "日", "h": "小时", "w": "周", "mo": "月", "y": "年", "mi": "分钟", "天": "日", "星": "周", "礼": "周",
}  # fmt: skip
_ABBREVIATED = {
    "qd": "每日1次", "bid": "每日2次", "tid": "每日3次", "qid": "每日4次", "qod": "每2日1次", "qw": "每周1次",
    "qn": "每晚1次", "biw": "每周2次", "tiw": "每周3次",
}  # fmt: skip
_ABBREVIATION = re.compile(r"(?<![a-z.])([qbt]\.?(?:i\.?[dw]|o\.?d|d|w|n))(?![a-z])\.?")
_BEATS = re.compile(r"(?<=\d) ?(?:bpm|(?:beats?|breaths?)(?:/| ?per |a )min(?:ute)?)(?![a-z])")
_TIMES_A_PERIOD = re.compile(
    rf"({_TIMES}) ?times? ?(?:(dai|week|month|hour|year)ly"
    rf"|(?:(?:an?|per|each|every) |/ ?)({_ENGLISH_PERIOD}))(?![a-z])"
)
_EVERY = re.compile(rf"(?:1 ?times )?every ?({_TIMES}) ?({_ENGLISH_PERIOD})(?![a-z])")
_EACH_PERIOD = re.compile(
    rf"[每1全](?<![\d.第].)个?({_PERIOD})(?={_AMOUNT}(?:[次{TAKEN}]|{_DOSE}))"
)
_PER = re.compile(
    r"(?<=[a-z\d%]) (?:per|an?(?= day)|each(?= day)|every(?= day)) "
    rf"(?=(?:{_ENGLISH_PERIOD}|kg|kilogram|ml|dl|liter|litre|milliliter|l|mg|g)(?![a-z]))"
)


def _chinese(period: str) -> str:
    """Return the period as it is written in a rate: "day" is "日", and "星期" is "周"."""
    return next((word for short, word in _CHINESE.items() if period.startswith(short)), period)


def _abbreviated(match: re.Match[str]) -> str:
    return _ABBREVIATED.get(match[1].replace(".", ""), match.group())


def _times_a_period(match: re.Match[str]) -> str:
    return f"每{_chinese(match[2] or match[3])}{match[1]}次"


def _a_period(match: re.Match[str]) -> str:
    return f"每{_chinese(match[2])}{match[1]}次"


def _every(match: re.Match[str]) -> str:
    return f"每{match[1]}{_chinese(match[2])}1次"


def _each_period(match: re.Match[str]) -> str:
    return f"每{_chinese(match[1])}"


RATES: tuple[Step, ...] = (
    (["bpm", "beat", "breath"], _BEATS, "次/分钟"),
    ("分", re.compile("/分(?![钟升米])"), "/分钟"),
    ("服", re.compile(r"[每1]?日服用?(?=\d{1,2}(?:~\d{1,2})?次)"), "每日"),
    ("bqt", _ABBREVIATION, _abbreviated),
    ("q", re.compile(r"(?<![a-z])q ?(\d{1,2}) ?h(?![a-z])"), r"每\1小时1次"),
    (["time"], _TIMES_A_PERIOD, _times_a_period),
    (["every"], re.compile("(?:1 ?times )?every other day(?![a-z])"), "每2日1次"),
    (["every"], _EVERY, _every),
    ("隔", re.compile("每?隔1?(?=[日天周])(?=.1次|.[服用注给])"), "每2"),
    ("隔", re.compile(r"每?间?隔(?=\d{1,2}(?:个?小时)1次)"), "每"),
    ("季", re.compile("每[1个]?季度?(?=1次)"), "每3个月"),
    ("年", re.compile("每0.5年(?=1次)"), "每6个月"),
    ("次", re.compile(rf"(?<![\d.])({_AMOUNT})次/({_PERIOD}|day|d)(?![a-z])"), _a_period),
    (
        "次",
        re.compile(r"([1-9](?<![每\d.~].)(?:(?<=[2-9])|\d)(?:个?小时|天|日|周|个月)1次)"),
        r"每\1",
    ),
    ("日天周期拜月年分时", _EACH_PERIOD, _each_period),
    ("次", re.compile(r"[1单](?<![\d.日天周月时年第].)次(?=\d)"), "每次"),
    ("每", re.compile("(?<=[克升尔摩位gl])每(?=(?:千克|公斤|kg|[分毫]?升|d?l|ml)(?![a-z]))"), "/"),
    ("每", re.compile(rf"每(日|千克|公斤|kg)(?:体重)?({_AMOUNT}{_DOSE})"), r"\2/\1"),
    ("重", re.compile("(/(?:千克|公斤|kg))体重"), r"\1"),
    ("(", re.compile(r"/\((kg|千克|公斤)[·.*×](d|日|天|h|小时|min|分钟)\)"), r"/\1/\2"),
    ("·", re.compile(r"·(kg|d|h|min|l)-1(?!\d)"), r"/\1"),
    (["daily"], re.compile(rf"(?<=\d)({_DOSE}) ?daily(?![a-z])"), r"\1/天"),
    ([" a", " per", "every", "each"], _PER, "/"),
)
"""Later steps take up what earlier ones write."""
