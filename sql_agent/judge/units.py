"""Quantities of a text in one form: one unit for every kind of quantity, one form of a rate.

    in_units("1克,2周")              # "1000毫克,336小时"
    in_units("12g/dl")              # "120000毫克/升"
    in_units("1日3次")              # "每日3次", as "3 times a day" and "tid"
    in_units("不超过5片")            # "≤5片"

pint gives the factors of units. Texts are in NFKC form and lower case, with digits for numerals.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any

from sql_agent.judge.rates import RATES, TAKEN
from sql_agent.judge.steps import Step, rewritten

# Every spelling of a unit, then its name in pint; spellings of one unit stand together.
_SPELLINGS = """
皮克/pg:picogram 纳克/ng:nanogram 微克/μg/ug/mcg/micrograms/microgram:microgram 毫克/mg/milligrams/milligram:milligram
克/g/grams/gram:gram 千克/公斤/kg/kilograms/kilogram:kilogram 斤/市斤:jin 磅/lbs/lb/pounds/pound:pound
微升/μl/ul/立方毫米/mm3:microliter 毫升/ml/cc/立方厘米/cm3/milliliters/milliliter/millilitres/millilitre:milliliter
分升/dl:deciliter 升/l/liters/liter/litres/litre:liter °c/摄氏度/度:degC °f/华氏度:degF
秒/秒钟/seconds/second/secs/sec:second 分钟/mins/min/minutes/minute:minute 刻钟:quarter_of_hour
小时/个小时/个钟头/钟头/hrs/hr/h/hours/hour:hour 天/日/昼夜/days/day/d:day 周/个星期/星期/个礼拜/礼拜/weeks/week/wks/wk:week
月/个月/months/month:month 季度/个季度/quarters/quarter:quarter_of_year 年/years/year/yrs/yr:year
米/公尺/m/meters/meter/metres/metre:meter 厘米/公分/cm/centimeters/centimeter/centimetres/centimetre:centimeter
毫米/mm/millimeters/millimeter/millimetres/millimetre:millimeter 微米/μm/um:micrometer
英寸/inches/inch:inch 英尺/feet/foot/ft:foot 平方米/m2:meter**2 平方厘米/cm2:centimeter**2
毫米汞柱/mmhg:mmHg 毫米水柱/mmh2o:millimeter_of_water 厘米水柱/cmh2o:cmH2O 千帕/kpa:kilopascal
摩尔/mol:mole 毫摩尔/毫摩/mmol:millimole 微摩尔/微摩/μmol/umol:micromole 纳摩尔/nmol:nanomole 皮摩尔/pmol:picomole
单位/units/unit/u:unit_of_effect 国际单位/iu:international_unit 戈瑞/gy:gray 厘戈瑞/cgy:centigray 毫戈瑞/mgy:milligray
千卡/大卡/kcal:kilocalorie 千焦/kj:kilojoule
"""
_GROUPS = [(many.split("/"), name) for many, name in (one.split(":") for one in _SPELLINGS.split())]
UNITS = {spelling: name for many, name in _GROUPS for spelling in many}
_FIRST = {spelling: many[0] for many, _ in _GROUPS for spelling in many}
_OWN_KINDS = (
    "jin = 0.5 kilogram",
    "quarter_of_hour = 15 minute",
    "quarter_of_year = 3 month",
    "millimeter_of_water = 0.1 * cmH2O",
    "unit_of_effect = [effect]",
    "international_unit = [international_effect]",
)
# What quantities are written in: 2周 and 14天 both become 336小时.
KEPT = {
    "毫克": "milligram", "毫升": "milliliter", "度": "degC", "小时": "hour", "mmhg": "mmHg", "毫米": "millimeter",
    "平方厘米": "centimeter**2", "毫摩尔": "millimole", "千卡": "kilocalorie", "单位": "unit_of_effect",
    "国际单位": "international_unit", "戈瑞": "gray",
}  # fmt: skip
# What stands behind a stroke is written in one of these, a minute as 小时, and a longer time as it is:
# mg/kg/天, g/升. A day is not 24 hours here, because 24 mg a day are not given as 1 mg an hour.
_KEPT_BELOW = {"升": "liter", "千克": "kilogram"}
_SHORT = {"second", "minute"}

UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
COUNTED = f"[{TAKEN}次岁例种]"
"""Measure words that a number stands before."""
_BEHIND = r"(?![a-z期夜围])"  # 周期, 周围 and 日夜 are no quantities
WRITTEN = re.compile("[0-9a-z]")
PER = "∕"
"""The stroke of a unit (毫克∕千克); other strokes stand between the pieces of a text."""
_DECIMAL = r"\d{1,12}(?:\.\d{1,6})?"

# Patterns begin with the signs they match and look back afterwards: `re` then skips all other signs.
_RANGE_SIGN = re.compile(
    rf"(\d(?:(?:{UNIT})(?:/(?:{UNIT}))*|{COUNTED}|%)?) ?(?:[至到~-]|—+|to(?= ?\d)) ?(?=-?\d)"
)
_BETWEEN = re.compile(
    r"(?:介于|(?<![a-z])between ?)(\d[^和与,]{0,8}?) ?(?:和|与|and) ?(\d[^,]{0,8}?)(?:之间|$|(?=,))"
)
_FROM = re.compile(r"(?:从|自|(?<![a-z])from ?)(?=\d[^~,;。]{0,6}(?:[至到~-]|to ))")
_ABOUT = re.compile(r"(?<![a-z])(?:approximately|approx\.?|around|roughly) (?=\d)")
_STROKES = rf"((?:/(?:{UNIT}){_BEHIND})*)"
_RANGE = re.compile(
    rf"({_DECIMAL})((?:{UNIT})(?:/(?:{UNIT}))*)?~(-?{_DECIMAL})({UNIT}){_BEHIND}{_STROKES}"
)
_COUNTED_RANGE = re.compile(rf"(\d)({COUNTED}|%)~({_DECIMAL})\2")
_QUANTITY = re.compile(
    rf"([-\d](?<![\d.].)(?:(?<=-)\d{{1,12}}|(?<=\d)\d{{0,11}})(?:\.\d{{1,6}})?)({UNIT}){_BEHIND}{_STROKES}"
)
_PER = re.compile(rf"/({UNIT}){_BEHIND}")
_SUM = re.compile(
    rf"(\d(?<![\d.~-].)\d{{0,11}}(?:\.\d{{1,6}})?)(小时|毫克)[零 ]?({_DECIMAL})\2(?!{PER})"
)
_PLAIN_NUMBER = re.compile(r"\d(?<![\d.a-z].)\d{0,14}\.\d{1,9}(?![\d.])")
# Other words and signs for a comparison with the number behind them.
_COMPARING = [
    "于", "超过", "足", "不到", "少", "多", "起码", "满", "least", "most", "than", "up to", "maximum", "minimum",
    "above", "below", "under", "exceeding", "=",
]  # fmt: skip
_COMPARED = {
    "≥": [">=", "大于或?等于", "[不无]小于", "不得?低于", "不得?少于", "[至最]少", "起码", "at least ",
          "(?:no|not) (?:less|fewer) than ", "(?:a )?minimum of "],
    "≤": ["<=", "小于或?等于", "[不无]大于", "不得?超[过出]", "不得?高于", "不得?多于", "[至最]多", "顶多", "at most ",
          "(?:no|not) more than ", "(?:a )?maximum of ", "up to "],
    ">": ["大于", "超过", "高于", "多于", "(?:more|greater|higher) than ", "above ", "exceeding "],
    "<": ["小于", "低于", "少于", "不足", "不到", "[未不]满", "(?:less|fewer|lower) than ", "below ", "under "],
}  # fmt: skip


def in_units(text: str) -> str:
    """Return the text with its quantities and ranges in the units that are kept, and rates in one form."""
    return rewritten(text, QUANTITIES) if WRITTEN.search(text) else text


def _shortest(match: re.Match[str]) -> str:
    return f"{float(match.group()):.12g}"


def _added(match: re.Match[str]) -> str:
    """Return two parts of a quantity as one number; a pair whose second is not smaller stays."""
    first, second = float(match[1]), float(match[3])
    return f"{_seven_digits(first + second)}{match[2]}" if second < first else match.group()


@cache
def _line(unit: str) -> tuple[float, float, str]:
    """Return for a spelling the factor and offset into the unit that is kept, and that unit.

    Raises KeyError: no kept unit is of its kind. Pint is slow, so it is asked once.
    """
    quantity = _pint().Quantity
    for kept, name in KEPT.items():
        if quantity(1.0, UNITS[unit]).is_compatible_with(name):
            offset = quantity(0.0, UNITS[unit]).to(name).magnitude
            return quantity(1.0, UNITS[unit]).to(name).magnitude - offset, offset, kept
    raise KeyError(f"no kept unit for {unit}")


@cache
def _below(unit: str) -> tuple[float, str]:
    """Return for a spelling behind a stroke its factor into the unit written there, and that unit."""
    quantity = _pint().Quantity(1.0, UNITS[unit])
    for kept, name in _KEPT_BELOW.items():
        if quantity.is_compatible_with(name):
            return quantity.to(name).magnitude, kept
    if UNITS[unit] in _SHORT:
        return quantity.to("hour").magnitude, _FIRST["hour"]
    return 1.0, _FIRST[unit]


@cache
def _pint() -> Any:
    registry = import_module("pint").UnitRegistry()
    for kind in _OWN_KINDS:
        registry.define(kind)
    return registry


def _converted(match: re.Match[str]) -> str:
    """Return a quantity in the unit that is kept; a year such as 2023年 stays."""
    number, unit, strokes = match.groups()
    if unit == "年" and re.fullmatch(r"(?:19|20)\d\d", number):
        return match.group()
    factor, offset, kept = _line(unit)
    value, behind = float(number) * factor + offset, ""
    for below in strokes.split("/")[1:]:
        factor, written = _below(below)
        value, behind = value / factor, f"{behind}{PER}{written}"
    return f"{_seven_digits(value)}{kept}{behind}"


def _first_below(match: re.Match[str]) -> str:
    return f"{PER}{_FIRST[match[1]]}"


def _both_ends(match: re.Match[str]) -> str:
    """Return a range with its unit at both ends, where the first has none of its own."""
    first, own, last, unit, strokes = match.groups()
    return f"{first}{own or unit + strokes}~{last}{unit}{strokes}"


def _seven_digits(value: float) -> str:
    """Return the number with seven digits: kilograms and months do not come out even."""
    return f"{float(f'{value:.7g}'):.15g}"


QUANTITIES: tuple[Step, ...] = (
    ("(", re.compile(rf"\(({_DECIMAL}[±~]{_DECIMAL})\)(?={UNIT})"), r"\1"),
    ("摄", re.compile(r"摄氏(?=-?\d)"), ""),
    ("华", re.compile(rf"华氏({_DECIMAL})度"), r"\1华氏度"),
    (("celsius", "degrees"), re.compile(r"(?<=\d) ?(?:degrees? )?(?:celsius|(?<=degrees )c(?![a-z]))"), "度"),
    ("周", re.compile(r"(?<=\d)周岁"), "岁"),
    ("+/-", re.compile(r"\+/-(?=\d)"), "±"),
    ("币", re.compile(r"人民币(?=\d)"), ""),
    ("角", re.compile(r"(?<=\d)[元块]([1-9])角"), r".\1元"),
    ("块", re.compile(r"(?<=\d)块钱"), "元"),
    ("¥", re.compile(rf"¥ ?({_DECIMAL})(?![\d.])元?"), r"\1元"),
    ("单", re.compile(r"(?<=\d)个(?=(?:国际)?单位)"), ""),
    ("^", re.compile(r"(?<=m)\^(?=[23])"), ""),
    ("度", re.compile(r"(3\d|4[0-2])(?<![\d.]..)度(\d)(?![\d.~])"), r"\1.\2度"),
    ("米", re.compile(r"([12])(?<![\d.].)米(\d\d)(?![\d.~厘公])"), r"\1.\2米"),
    ("分", re.compile(r"(?<=\d)(?:小时|h)(\d{1,2})分(?![钟之])"), r"小时\1分钟"),
    ("比", re.compile(r"(?<=\d)比(?=\d)"), ":"),
    ("大", re.compile(r"大[约概](?=-?\d)"), "约"),
    ("右", re.compile(r"约?(?<![\d.~])(\d[^,;。~]{0,6})左右"), r"约\1"),
    ("内", re.compile(rf"(?<=\d)({UNIT}){_BEHIND}[以之]内"), r"\1内"),
    (["approx", "around", "roughly"], _ABOUT, "about "),
    ("介b", _BETWEEN, r"\1~\2"),
    (("从", "自", "from"), _FROM, ""),
    (("至", "到", "~", "-", "—", "to"), _RANGE_SIGN, r"\1~"),
    ("~", _COUNTED_RANGE, r"\1~\3\2"),
    *RATES,
    ("~", _RANGE, _both_ends),
    ("", _QUANTITY, _converted),
    ("/", _PER, _first_below),
    (("时", "克"), _SUM, _added),
    *((_COMPARING, re.compile(rf"(?:{'|'.join(words)}) ?(?=-?\d)"), sign) for sign, words in _COMPARED.items()),
    ("<>≤≥", re.compile(r"(?<=[<>≤≥]) (?=-?\d)"), ""),
    (["以上"], re.compile(r"(?<![\d.~≥])(\d[^,;。~及]{0,4})及\1以上"), r"≥\1"),
    (("及以上", "或以上", "含以上"), re.compile(r"(?<![\d.~≥])(\d[^,;。~]{0,6})[及或含]以上"), r"≥\1"),
    (".", _PLAIN_NUMBER, _shortest),
)  # fmt: skip
