"""What stands before a fact and claims nothing: whose it is, which field, and words of the question.

heads = Heads("X怎么存放？")
heads.labels.add("贮藏")
heads.leads("根据数据库，X的贮藏是")         # True
heads.leads("Y的贮藏是")                   # False
"""

from __future__ import annotations

import re
from collections import defaultdict

from scoring.text import words_only
from sql_agent.judge.pieces import DENYING, ENDING, HAS_WORD, HELPERS, JOINT, WORDS

LONGEST = 120  # characters of a head

PLAIN = (
    "(?:[该此这]|这[个种])(?:药品?|病|品|疾病|患者)|本[品病药]|它|正确|方面|相关|有关|对应|具体|1共|总共|共计|合计"
    "|总计|数量|方法|措施|情况|食[物品]|如下|记录|的|中|里|共|其|该|时|了|种|对"
)
ENGLISH_PLAIN = "a|an|was|were|has|had|been|be|to|on|at|by|with|and"
BESIDE = re.compile(f"\n|{PLAIN}|{WORDS}|(?<![a-z])(?:{ENGLISH_PLAIN})(?![a-z])")
ARTICLES = {"a", "an", "the"}
JOINT_BEFORE = re.compile(f"^(?:{JOINT})")
# That something may be done is wrong before what must not be: only where the question asks for it.
MAY = re.compile("可以|选用|使用|服用|应用|治疗|用于|可|能|用|吃|治")
FORBIDS = re.compile("禁|忌|慎|不宜|不能|不可|避免")
HANGING = re.compile("(?<![a-z])(?:about|after|from|per|up)$")
"""Changes the number behind it: "about 5"."""
YES_OR_NO = re.compile(r"(.)[不没]\1")  # 能不能吃 does not say 不能吃
ENGLISH_WORD = re.compile(r"\d+(?:\.\d+)?|[a-z]+")


class Lexicon:
    """Words that are found in a text from left to right, the longest first."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self._by_start: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, word: str) -> None:
        if word and word not in self.words:
            self.words.add(word)
            alike = self._by_start[word[:2]]
            alike.append(word)
            alike.sort(key=len, reverse=True)

    def split(self, text: str) -> tuple[list[str], str]:
        """Return the words that were found, and the text with a line break for each."""
        found, rest, place = [], "", 0
        while place < len(text):
            alike = self._by_start.get(text[place : place + 2], ())
            word = next((word for word in alike if text.startswith(word, place)), None)
            if word:
                found.append(word)
            rest += "\n" if word else text[place]
            place += len(word) if word else 1
        return found, rest


class Heads:
    """What a question asks about, with the names, labels and whole heads that gold has."""

    def __init__(self, question: str) -> None:
        self.asked = question
        self.words = YES_OR_NO.sub(r"\1", words_only(question))
        self.english = set(ENGLISH_WORD.findall(question))
        self.may = bool(MAY.search(question)) and not FORBIDS.search(question)
        self.names, self.labels, self.whole = Lexicon(), Lexicon(), set[str]()

    def leads(self, text: str) -> bool:
        """Return whether the text only leads to a fact: "X的Y是", "根据数据库查询结果", "X用药的禁忌有"."""
        if text in ARTICLES or text in self.whole:
            return True
        if len(text) > LONGEST or HANGING.search(text):
            return False
        if HELPERS.fullmatch(text):
            return ENDING.fullmatch(text.removesuffix(" the")) is not None
        rest = JOINT_BEFORE.sub("", ENDING.sub("", text)).strip()
        if not rest or rest in self.whole:
            return True
        return not HELPERS.fullmatch(rest) and self.asks(rest)

    def restates(self, text: str) -> bool:
        """Return whether the text is the question as a sentence, and neither of them denies."""
        denies = DENYING.search(text) or DENYING.search(self.words)
        return not denies and len(text) > 1 and self.asks(text)

    def asks(self, text: str) -> bool:
        """Return whether the text consists of names, labels, plain words and parts of the question."""
        rest = self.labels.split(self.names.split(text)[1])[1]
        left = BESIDE.split(rest)
        if self.may:
            left = [part for one in left for part in MAY.split(one)]
        return all(map(self._is_asked, filter(HAS_WORD.search, left)))

    def _is_asked(self, part: str) -> bool:
        """Return whether the question has the part; English words and numbers whole, in any order."""
        words = words_only(part)
        if not words:
            return part.strip() in self.asked
        if words.isascii():
            known = all(word in self.english for word in ENGLISH_WORD.findall(part))
            return known and not DENYING.search(part)
        if len(words) < 3 and DENYING.search(words):
            return False
        place = self.words.find(words)
        while place >= 0 and not self._stands_alone(place, place + len(words)):
            place = self.words.find(words, place + 1)
        return place >= 0

    def _stands_alone(self, start: int, end: int) -> bool:
        """Return whether the words of the question there are not inside a number, nor denied by it."""
        around = (
            (self.words[:start][-1:], self.words[start]),
            (self.words[end - 1], self.words[end:][:1]),
        )
        inside = any(one and other and (one + other).isascii() for one, other in around)
        return not inside and around[0][0] not in {*"不没未非无别勿"}
