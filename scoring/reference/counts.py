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
from scoring.reference.text import RE, canonical, chinese_number, numbers, words_only

MOST_NUMBERS = 3  # an answer that offers more values offers none


def count_worth(wanted: float, answer: str, question: str) -> float:
    """1 for the count alone, 0 without it; several values share 0.8. Nothing found counts as 0 found."""
    stated = stated_counts(answer, question)
    said = numbers(canonical(answer)) - numbers(canonical(question))
    if wanted == 0 and not stated | said:
        return float(abstains(answer) or RE.not_one.search(answer) is not None)
    offered = stated | said
    if wanted not in stated or len(offered) > MOST_NUMBERS:
        return 0.0
    return 1.0 if len(offered) == 1 else 0.8 / len(offered)


def stated_counts(answer: str, question: str) -> set[float]:
    """The whole numbers that the answer gives as a count of what the question asks about."""
    asked = canonical(question)
    text = RE.count_numeral.sub(lambda match: str(chinese_number(match.group())), RE.not_one.sub("", canonical(answer)))
    written = RE.noun_after.findall(asked) + RE.noun_before.findall(asked)
    nouns = [words_only(noun).replace("的", "") for noun in written]
    thing = re.compile("|".join(["[药病疾]", *(re.escape(noun) for noun in nouns if noun)]))
    counted = _counted("".join(RE.asked_measure.findall(asked)))
    found = {float(match[1]) for match in counted.finditer(text) if _is_the_count(match, thing)}
    return found | {float(number) for number in RE.english_count.findall(text)} or _bare_numbers(text, asked)


@lru_cache(maxsize=256)
def _counted(measures: str) -> re.Pattern[str]:
    """A whole number with a measure word, these ones too; group 2 is the rest of the clause, as far as it matters."""
    return re.compile(RE.count.pattern.replace("MORE", re.escape(measures)))


def _is_the_count(match: re.Match[str], thing: re.Pattern[str]) -> bool:
    before, rest = match.string[max(0, match.start() - 8) : match.start()], match[2]
    if RE.manner.search(rest) or (match[1] == "1" and RE.same.search(before) and not RE.in_all.search(before)):
        return False
    if RE.ends.match(rest) or RE.in_all.search(before):
        return True
    opens = match[1] != "1" or not before[-1:].isalnum()
    return (thing.search(rest) if opens else thing.match(rest)) is not None


def _bare_numbers(text: str, asked: str) -> set[float]:
    """The numbers of an answer with 12 other characters at most: each in a clause without words of its own."""
    ours = set(words_only(RE.polite.sub("", asked)))
    clauses = [(RE.bare.findall(clause), clause) for clause in RE.clause.split(text)]
    beside = (words_only(RE.beside.sub("", RE.bare.sub("", clause))) for _, clause in clauses)
    own = [sum(sign not in ours for sign in words) for words in beside]
    found = {float(number) for (bare, _), said in zip(clauses, own, strict=True) if not said for number in bare}
    return found if sum(own) <= 12 else set()
