"""What counts against an answer beside what it leaves out: copied cells, strange numbers, inventions, length and more.

Each returns a factor in [0, 1], 1 for an answer without fault. `known` is what the answer may say: question, reference
and gold as the words of their canonical text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rapidfuzz import fuzz

from scoring.reference.coverage import ITEM, core_of
from scoring.reference.names import FORM_END, NAME
from scoring.reference.quantities import canonical
from scoring.reference.reading import Reading
from scoring.reference.text import normalise, numbers, words_only

SHORTEST_FOREIGN_CELL = 4  # characters; shorter cells occur in answers by chance
SPARE_CHARACTERS = 30  # an answer may say a little more than gold, however short that is
SUPPORTED = 60.0  # percent of an item's characters that match one place of what is known
MOST_FOR_INVENTIONS = 0.8
HEDGES_ALLOWED, HEDGED = 1, 0.8
TAKEN_BACK, ADDRESSED = 0.1, 0.2

DIGITS, LONGEST_MEASURE = re.compile(r"\d+"), 2
ENGLISH = re.compile(r"[a-z]{4,}")  # cannot be compared with Chinese
LATIN = frozenset("abcdefghijklmnopqrstuvwxyz")  # English names, which the question's cannot be compared with
SUBJECT = re.compile(r"^[\W_]*([\w-]{2,20}?)(?:的[\w]{2,8})?:")
PERHAPS = re.compile(r"可能|也许|或许|大概|不确定|不太确定|好像|要么|说不定|应该是")
RETRACTION = re.compile(
    r"^[\W_]*(?:这|答案)?(?:并不是|并非|不是)|(?:正好|恰恰|完全)相反|(?:以上|上述|上面|前面)\w{0,6}(?:错|不对|不正确|不成立|有误|不属实)"
)
TO_THE_JUDGE = re.compile(
    r"评分|评审|打分|满分|裁判|给1分|应得\d+分|参考答案|材料(?:开始|结束)|\bscore|accuracy|completeness|fullmarks|grading"
    r"|ignore[a-z]{0,24}(?:previous|above|instruction)|everyscore|忽略(?:以上|上述|之前|评分)|<\|im_"
)
# What people say around an answer; an item with such words and no digits states nothing.
COURTESY = re.compile(
    r"您好|你好|根据|数据库|查询|检索|记录|资料|结果|如有|疑问|咨询|医生|医师|药师|遵医嘱|医嘱|仅供参考|以上|如下|说明书|阅读|建议|希望|祝您|供您|具体|注意|情况|人群|一共|共有|共查到|相关"
)


def precision(context: Iterable[list[str]], answer: str, known: str) -> float:
    """Length of known text against length of foreign cells in the answer; 1 without any."""
    cells = {cell for row in context for cell in row}
    foreign = {cell for cell in cells if len(cell) >= SHORTEST_FOREIGN_CELL and cell not in known and cell in answer}
    if not foreign or not answer:
        return 1.0
    return max(0, len(answer) - sum(map(len, foreign))) / len(answer)


def number_agreement(wanted: Iterable[str], reading: Reading, known: str) -> float:
    """Gold's numbers against gold's and strange ones; where gold has none, strange ones count as inventions only."""
    gold = numbers("\n".join(wanted))
    strange = numbers(reading.text) - gold - numbers(known)
    return len(gold) / (len(gold) + len(strange)) if gold else 1.0


def support(reading: Reading, known: str, needed: int) -> float:
    """1 for an answer all of whose statements are known; towards 0.2 the more is said that is not."""
    invented = sum(len(core) for core in _items(reading) if not _is_known(core, known))
    return 1.0 - MOST_FOR_INVENTIONS * invented / (invented + max(1, needed))


def _items(reading: Reading) -> Iterable[str]:
    for clause, _ in reading.clauses:
        for part in ITEM.split(clause):
            core = core_of(ENGLISH.sub("", words_only(part)))
            if len(core) >= 2 and (not COURTESY.search(part) or numbers(part)):
                yield core


def _is_known(core: str, known: str) -> bool:
    said = DIGITS.sub("", core)  # strange numbers count elsewhere
    return len(said) <= LONGEST_MEASURE or core in known or fuzz.partial_ratio(core, known) >= SUPPORTED


def subject(reading: Reading, known: str) -> float:
    """Below 1, down to 0.5, when the answer begins with the name of something nobody asked about."""
    match = SUBJECT.match(reading.text)
    name = match.group(1) if match else ""
    endings = (name[i:] for i in range(len(name)))
    asked_for = any(end in known and len(FORM_END.sub("", end)) > 1 for end in endings)
    if not NAME.fullmatch(name) or asked_for or not LATIN.isdisjoint(name):
        return 1.0
    return 0.5 + fuzz.partial_ratio(name, known) / 200


def hedging(reading: Reading) -> float:
    """Below 1 for an answer that calls several of its statements uncertain."""
    return HEDGED if len(PERHAPS.findall(reading.text)) > HEDGES_ALLOWED else 1.0


def sincerity(reading: Reading) -> float:
    """Far below 1 for an answer that takes back what it says, or that speaks to a judge, not to who asked."""
    taken_back = TAKEN_BACK if RETRACTION.search(reading.text) else 1.0
    spoken_to = TO_THE_JUDGE.search(reading.text) and not TO_THE_JUDGE.search(canonical(reading.question))
    return taken_back * (ADDRESSED if spoken_to else 1.0)


def brevity(needed: int, reading: Reading) -> float:
    """1 up to about twice the needed length, then in proportion."""
    allowed = 2 * needed + len(reading.asked) + SPARE_CHARACTERS
    return min(1.0, allowed / max(1, len(normalise(reading.answer))))
