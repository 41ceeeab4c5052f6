"""Counts in an answer to "how many": which numbers it states as the count, and which it offers beside it.

count_worth(3, "共有3种药。", "治头痛的药有几种？")          # 1.0
count_worth(3, "每日3次，连用3天。", "治头痛的药有几种？")     # 0.0: a number, but no count

A number is the count when a measure word follows it and the clause ends or names what is counted, when "in all" stands
before it, or when the answer is little else. "第3种", "不是3种" and "这是一种药" are none.
"""

from __future__ import annotations

import re

from scoring.reference.abstention import abstains
from scoring.reference.text import RE, amounts, canonical, numbers, words_only

COUNTED = ("", *"种个家款")  # what may stand behind a count
MOST_NUMBERS, SHARED = (
    3,
    0.8,
)  # an answer that offers more values offers none; what several values share
MOST_BESIDE = 2  # characters of its own beside a bare number


def count_worth(wanted: float, answer: str, question: str) -> float:
    """1 for the count alone, 0 without it; several values share SHARED. Nothing found counts as 0 found."""
    stated = stated_counts(answer, question)
    said = {number for number, unit in amounts(canonical(answer)) if unit in COUNTED}
    offered = stated | (said - numbers(canonical(question)))
    if wanted == 0 and not offered:
        return float(abstains(answer) or RE.not_one.search(answer) is not None)
    right = wanted in stated and len(offered) <= MOST_NUMBERS
    return right * (1.0 if len(offered) < 2 else SHARED / len(offered))


def stated_counts(answer: str, question: str) -> set[float]:
    """The whole numbers that the answer gives as a count of what the question asks about."""
    asked = canonical(question)
    text = re.sub("一(?=[种个项例名样])", "1", RE.not_one.sub("", canonical(answer)))
    pairs = {asked[i : i + 2] for i in range(len(asked) - 1)}
    found = {float(match[1]) for match in RE.count.finditer(text) if _is_the_count(match, pairs)}
    found |= {float(number) for number in RE.english_count.findall(text)}
    return found or _bare(text, asked)


def _is_the_count(match: re.Match[str], asked: set[str]) -> bool:
    before, rest = match.string[max(0, match.start() - 8) : match.start()], match[2]
    in_all = RE.in_all.search(before)
    if RE.manner.search(rest) or (match[1] == "1" and RE.same.search(before) and not in_all):
        return False
    if in_all or RE.ends.match(rest):
        return True
    places = [
        place
        for place in range(len(rest))
        if rest[place] in "药病疾" or rest[place : place + 2] in asked
    ]
    article = match[1] == "1" and before[-1:].isalnum()
    return bool(places) and not (article and places[0])


def _bare(text: str, asked: str) -> set[float]:
    """The number of an answer that says next to nothing else."""
    found = {float(number) for number in re.findall(r"(?<![\d.,])\d{1,9}(?![\d.,]*\d)(?!\w)", text)}
    own = [
        sign for sign in words_only(RE.beside.sub("", re.sub(r"\d", "", text))) if sign not in asked
    ]
    return found if len(own) <= MOST_BESIDE else set()
