"""Counts in an answer to "how many": which numbers it states as the count, and which it offers beside it.

count_worth(3, "共有3种药。", "治头痛的药有几种？")          # 1.0
count_worth(3, "每日3次，连用3天。", "治头痛的药有几种？")     # 0.0: a number, but no count
count_worth(1, "这是一个好问题！", "治头痛的药有几种？")       # 0.0

A number is the count when a measure word follows it and what is counted can be heard: the clause ends there, names the
thing asked about, or says "in all" before it; or when the answer is little else than the number. An ordinal
("第3种"), a decimal, a denial ("不是3种") and "one" as an article ("这是一种药") are no counts.
"""

from __future__ import annotations

import re
from functools import lru_cache

from scoring.reference.abstention import abstains
from scoring.reference.quantities import canonical, chinese_number
from scoring.reference.reading import CLAUSE
from scoring.reference.text import numbers, words_only

HOW_MANY = re.compile(
    r"(?:多少|几)(?:种|个(?!月|小时|星期|疗程)|款|类|项|例|名|位|家|样|味|条|药|疾?病|人)|数量|数目|总数|how ?many",
    re.IGNORECASE,
)
MOST_NUMBERS = 3  # an answer that offers more values offers none
UNDECIDED = 0.8  # what several values are worth together, shared among them
MOST_BESIDE = 12  # other characters in an answer that is little else than a number

MEASURES = "种个款类项例名位家样味条"
ASKED_MEASURE = re.compile(r"(?:多少|几)(\w)")
NUMERAL = re.compile(rf"[零〇一二两三四五六七八九十百千]{{1,9}}(?=[{MEASURES}])")
NOT_BEFORE = ("第", "每", "某", "任何", "不是", "没有", "并非", "不止", "不到", "超过", "少于", "多于")
NOT_A_COUNT = "".join(f"(?<!{word})" for word in NOT_BEFORE)
NOT_ONE = re.compile(r"[一1]\w\w{0,6}?[也都](?:没|不|无)")
IN_ALL = re.compile(
    r"(?:共|总计|合计|(?<![没具含])有|仅|只|(?:数量|数目|总数|答案|结果)(?:是|为|:)|[查找]到)[^\W\d]{0,2}$"
)
ARTICLE = re.compile(r"[是这那哪同另中换上下以如]$")  # before "one": "这是一种", "同一种"
ENDS = re.compile(r"(?:左右|以上|以下|吧|呢|哦|呀|啊|了|的)?(?:$|[或和与到至~/—-])")
THING = re.compile(r"[药病疾]")
NOUN = (re.compile(r"(?:多少|几)\w(\w\w)"), re.compile(r"(\w\w)(?:一共|总共|共|总)?(?:有|是)?(?:多少|几)"))
_MANNER = r"问题|方面|部分|要点|步骤|方法|办法|建议|情况|原因|阶段|角度|说明"
MANNER = re.compile(rf"^\w{{0,2}}?(?:{_MANNER})|(?:{_MANNER})$")  # what an answer has two or three of by itself
ENGLISH = re.compile(r"(?<![\d.])(\d{1,9})(?:different)?(?:kinds?|types?|drugs?|medic|products?|diseases?)")
BARE = re.compile(r"(?<![\d.,])\d{1,9}(?![\d.,]*\d)")
# What may stand beside a bare number: "符合条件的药品数量为12".
BESIDE = re.compile(
    r"您好|你好|经|根据|数据库|查询|检索|统计|结果|记录|显示|答案|符合|满足|条件|相关|药品|药物|疾病|数量|数目|个数"
    r"|总数|总计|合计|一共|大约|可能|应该|[共计有是为约的中里在仅只或也到至]|there|are|is|the|answer|total|count"
)
POLITE = re.compile(r"请问|帮我|麻烦|查一下|数一下|告诉我|一共|多少|几|谢谢|\d")


def count_worth(wanted: float, answer: str, question: str) -> float:
    """1 for the count alone, 0 without it; several values share UNDECIDED. Nothing found counts as 0 found."""
    stated = stated_counts(answer, question)
    said = numbers(canonical(answer)) - numbers(canonical(question))
    if wanted == 0 and not stated | said:
        return float(abstains(answer) or NOT_ONE.search(answer) is not None)
    offered = stated | said
    if wanted not in stated or len(offered) > MOST_NUMBERS:
        return 0.0
    return 1.0 if len(offered) == 1 else UNDECIDED / len(offered)


def stated_counts(answer: str, question: str) -> set[float]:
    """The whole numbers that the answer gives as a count of what the question asks about."""
    asked = canonical(question)
    text = NUMERAL.sub(lambda match: str(chinese_number(match.group())), NOT_ONE.sub("", canonical(answer)))
    nouns = [words_only(noun).replace("的", "") for pattern in NOUN for noun in pattern.findall(asked)]
    thing = re.compile("|".join([THING.pattern, *(re.escape(noun) for noun in nouns if noun)]))
    counted = _counted(MEASURES + "".join(ASKED_MEASURE.findall(asked)))
    found = {float(match[1]) for match in counted.finditer(text) if _is_the_count(match, thing)}
    return found | {float(number) for number in ENGLISH.findall(text)} or _bare_numbers(text, asked)


@lru_cache(maxsize=256)
def _counted(measures: str) -> re.Pattern[str]:
    """A whole number with a measure word; group 2 is the rest of the clause, as far as it matters."""
    number = rf"{NOT_A_COUNT}(?<!\d)(?<!\d[.,/])(\d{{1,9}})"
    return re.compile(rf"{number}[{re.escape(measures)}](?!月|小时|星期|疗程|半)(?=([^\n,.;:!?、。()\[\]|\"]{{0,30}}))")


def _is_the_count(match: re.Match[str], thing: re.Pattern[str]) -> bool:
    before, rest = match.string[max(0, match.start() - 8) : match.start()], match[2]
    if MANNER.search(rest) or (match[1] == "1" and ARTICLE.search(before) and not IN_ALL.search(before)):
        return False
    if ENDS.match(rest) or IN_ALL.search(before):
        return True
    opens = match[1] != "1" or not before[-1:].isalnum()
    return (thing.search(rest) if opens else thing.match(rest)) is not None


def _bare_numbers(text: str, asked: str) -> set[float]:
    """The numbers of an answer that is little else: each in a clause without words of its own."""
    ours = set(words_only(POLITE.sub("", asked)))
    clauses = [(BARE.findall(clause), clause) for clause in CLAUSE.split(text)]
    own = [sum(sign not in ours for sign in words_only(BESIDE.sub("", BARE.sub("", clause)))) for _, clause in clauses]
    found = {float(number) for (bare, _), said in zip(clauses, own, strict=True) if not said for number in bare}
    return found if sum(own) <= MOST_BESIDE else set()
