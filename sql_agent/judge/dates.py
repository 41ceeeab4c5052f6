"""Dates and times of day in one form.

    dates_in_one_form("2023年4月7日上午8点30分")     # "2023/4/7 8:30", as 2023-04-07 08:30:00
    dates_in_one_form("april 7, 2023")             # "2023/4/7"
    dates_in_one_form("4月07日")                    # "4月7号"

A date such as 04/05/2023 stays: it has two readings. Texts are in NFKC form and lower case, with
digits for numerals.
"""

from __future__ import annotations

import re

from sql_agent.judge.steps import Step, rewritten

DIGIT = re.compile("[0-9]")
_YEAR = r"(?<![\d.])((?:19|20)\d\d)"
_MONTH = r"(0?[1-9]|1[0-2])"
_DAY = r"(0?[1-9]|[12]\d|3[01])"
_NAMES = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_NAMED = (
    r"(?<![a-z])(jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)"
    r"(?:uary|ruary|ch|il|e|y|ust|ember|tember|ober)?(?![a-z])\.?"
)
_TH = r"(?:st|nd|rd|th)?(?: of)?"
_PART_OF_DAY = "上午|早上|早晨|清晨|凌晨|中午|下午|晚上|傍晚|晚"
_HOUR = r"(\d(?<![\d.:].)\d?)"
_SPOKEN = re.compile(rf"{_HOUR}[点时](?:(\d{{1,2}})分|(半)|([123])刻|[整钟])")
_CLOCK = re.compile(rf"{_HOUR}:(\d\d)(?::(\d\d))?(?:\.0+)?(?![\d:])")
_HALF_OF_DAY = re.compile(r"(\d{1,2}):(\d\d) ?([ap])\.?m(?![a-z])\.?")
_AFTERNOON = ("下午", "晚上", "傍晚", "晚", "p")


def dates_in_one_form(text: str) -> str:
    """Return the text with its dates as 2023/4/7 and its times of day as 8:30."""
    return rewritten(text, DATES) if DIGIT.search(text) else text


def _written(year: str, month: str, day: str) -> str:
    return "/".join(str(int(part)) for part in (year, month, day) if part)


def _numeric(match: re.Match[str]) -> str:
    gap = " " if match.string[match.end() : match.end() + 1].isdigit() else ""
    return _written(match[1], match[3] or match[5], match[4] or match[6]) + gap


def _year_month(match: re.Match[str]) -> str:
    return _written(match[1], match[2] or match[3], "")


def _year_last(match: re.Match[str]) -> str:
    """Return 2023/4/27 for 27/4/2023 and 4/27/2023; 4/5/2023 may be two dates and stays."""
    first, second, year = int(match[1]), int(match[2]), match[3]
    if not (min(first, second) <= 12 < max(first, second) <= 31):
        return match.group()
    return f"{year}/{min(first, second)}/{max(first, second)}"


def _month_of(name: str) -> str:
    return str(_NAMES.index(name[:3]) + 1)


def _month_first(match: re.Match[str]) -> str:
    return _written(match[3], _month_of(match[1]), match[2])


def _day_first(match: re.Match[str]) -> str:
    return _written(match[3], _month_of(match[2]), match[1])


def _month_year(match: re.Match[str]) -> str:
    return _written(match[2], _month_of(match[1]), "")


def _month_day(match: re.Match[str]) -> str:
    return f"{int(match[1])}月{int(match[2])}号"


def _spoken(match: re.Match[str]) -> str:
    """Return 8:30 for 8点30分, 8时半 and 8点2刻."""
    hour, minute, half, quarters = match.groups()
    minutes = 30 if half else 15 * int(quarters) if quarters else int(minute or 0)
    return f"{hour}:{minutes:02d}"


def _clock(match: re.Match[str]) -> str:
    """Return 8:30 for 08:30:00; what is not a time of day stays."""
    hour, minute, second = match.groups()
    if int(hour) > 24 or int(minute) > 59:
        return match.group()
    return f"{int(hour)}:{minute}" + (f":{second}" if int(second or 0) else "")


def _of_24_hours(hour: str, minute: str, part: str) -> str:
    """Return 20:30 for 晚上8:30 and for 8:30 pm."""
    hours = int(hour)
    if hours <= 12 and part != "中午":
        hours = 12 * (part in _AFTERNOON) + hours % 12
    return f"{hours}:{minute}"


def _in_part_of_day(match: re.Match[str]) -> str:
    return _of_24_hours(match[2], match[3], match[1])


def _in_half_of_day(match: re.Match[str]) -> str:
    return _of_24_hours(match[1], match[2], match[3])


DATES: tuple[Step, ...] = (
    ("点时", _SPOKEN, _spoken),
    (_PART_OF_DAY.split("|"), re.compile(rf"({_PART_OF_DAY})(\d{{1,2}})[点时](?!\d)"), r"\1\2:00"),
    (["am", "pm", "a.m", "p.m"], re.compile(rf"{_HOUR} ?([ap])\.?m(?![a-z])\.?"), r"\1:00\2m"),
    (":", _CLOCK, _clock),
    (_PART_OF_DAY.split("|"), re.compile(rf"({_PART_OF_DAY})(\d{{1,2}}):(\d\d)"), _in_part_of_day),
    (["am", "pm", "a.m", "p.m"], _HALF_OF_DAY, _in_half_of_day),
    (("19", "20"), re.compile(rf"{_YEAR}(?:([-/.]){_MONTH}\2{_DAY}(?!\d)|年{_MONTH}月{_DAY}(?:[日号]|(?!\d)))"), _numeric),
    (("19", "20"), re.compile(rf"{_YEAR}(?:年{_MONTH}月份?(?!\d)|-(0[1-9]|1[0-2])(?![-/\d]))"), _year_month),
    (("/19", "/20"), re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})/((?:19|20)\d\d)(?!\d)"), _year_last),
    (_NAMES, re.compile(rf"{_NAMED} ?{_DAY}{_TH},? ?{_YEAR}(?!\d)"), _month_first),
    (_NAMES, re.compile(rf"(?<![\d.]){_DAY}{_TH}[ -]?{_NAMED},?[ -]?{_YEAR}(?!\d)"), _day_first),
    (_NAMES, re.compile(rf"{_NAMED},? ?{_YEAR}(?!\d)"), _month_year),
    ("月", re.compile(rf"(?<!\d){_MONTH}月{_DAY}[日号]"), _month_day),
    (":", re.compile(r"((?:19|20)\d\d/\d{1,2}/\d{1,2})(?:t|,? ?at ?|[, ]+)(?=\d{1,2}:\d\d)"), r"\1 "),
    ((" 0:00",), re.compile(r"(?<=\d) 0:00(?![\d:])"), ""),
)  # fmt: skip
