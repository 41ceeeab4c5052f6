"""Text beside a fact that claims nothing: frames, names, fields, and words of the question.

heads = Heads("x怎么存放?")
heads.labels.add("贮藏")
heads.leads("根据数据库,x的贮藏是")         # True
heads.leads("y的贮藏是")                   # False
"""

import re
from collections.abc import Iterable
from itertools import chain

from scoring.text import words_only
from sql_agent.judge.fold import HAS_WORD, TABLE

LONGEST = 120  # characters of a head
SHORTEST_DENIAL = 3  # characters of the question that may be repeated although they deny

_DO_NOT = "(?<![性类级区分特鉴])别(?![名称])"  # and no part of 性别 or 别名
# What takes back or denies where it stands beside a fact
DENYING = re.compile("|".join([_DO_NOT, *TABLE["words"]["denying"]]))
JOINT = "以及|还有|另有|和|及|与|或者?|跟|并且?|且| and | or |(?<![a-z])(?:and|or) "
COPULA = "|".join(TABLE["words"]["copula"])
ENDING = re.compile(f"方面$|(?:{COPULA})(?:以下几[种个点]|如下| as follows)?$")
_FRAME = "|".join(TABLE["words"]["frame"])
_ENGLISH = "|".join(TABLE["words"]["english"])
FRAME_WORDS = rf"{_FRAME}|(?<![a-z])(?:{_ENGLISH})(?![a-z])"
FRAME = re.compile(rf"(?:(?>{FRAME_WORDS}) ?)++")  # possessive: "查到" is a word, and two
_WHEN, _HOW, _ADVICE = ("|".join(TABLE["words"][name]) for name in ("when", "how", "advice"))
ADVICE = re.compile(rf"(?:{_WHEN})*(?:{_HOW})*(?:{_ADVICE})")
ALONE = re.compile("|".join(TABLE["words"]["alone"]))
BESIDE = re.compile(f"{'|'.join(TABLE['words']['head'])}|{FRAME_WORDS}|{COPULA}")
ASKED_AS = [re.compile("|".join(words)) for words in TABLE["asked_as"].values()]
# That something may be done is wrong before what must not be: only where the question asks for it.
MAY = re.compile("|".join(TABLE["words"]["may"]))
# Asks what a named drug is for. 服用x会怎样 does not, and nobody takes x for what follows
PURPOSE = re.compile("|".join(TABLE["words"]["purpose"]))
TAKEN = re.compile("(?:服用|使用|应用|用|吃)了?(?=\n)")  # x, for which there is a line break by now
FORBIDS = re.compile("禁|忌|慎|不宜|不能|不可|避免")
# 用 and 吃 of 不能用 and 不可以吃 are denied in the question
DENIED = re.compile(
    f"(?:不[能可以应该宜要会是]*|[没未非无勿]|{_DO_NOT})(?:(?:{MAY.pattern})+|.)|禁(?:{MAY.pattern})+"
)
YES_OR_NO = re.compile(r"(.)[不没]\1")  # 能不能吃 does not say 不能吃
FIELD = re.compile("[一-鿿]{2,6}")  # a field that is told in other words than gold's
# Around a field: 的单价, 's bed count, the stay of
AROUND = re.compile(r"^(?:的|'s\b|(?:is |are )?the\b|\s)+|(?:的|\s(?:of|for)|\s)+$")
THAN = re.compile("than \\d+[a-z]*")  # folded: more than 3drugs
ENGLISH_WORD = re.compile(r"\d+(?:\.\d+)?|[a-z]+")


def is_free(piece: str) -> bool:
    """Return whether the piece is a frame or advice to ask others. "是" alone is neither."""
    piece = piece.removesuffix("?")
    framed = FRAME.fullmatch(piece) is not None and not ALONE.fullmatch(piece)
    return framed or ADVICE.fullmatch(piece) is not None


class Heads:
    """What a question asks about, with the names and labels that gold has, all folded."""

    def __init__(self, question: str) -> None:
        self.asked = question
        self.words = YES_OR_NO.sub(r"\1", words_only(question))
        denied = [range(one.start() + 1, one.end()) for one in DENIED.finditer(self.words)]
        self.denied = set(chain(*denied))
        self.english = {"s", *ENGLISH_WORD.findall(question)}  # of a plural, and of a possessor
        self.names: list[str] = []  # in the order of the reference, else of the rows
        self.labels: set[str] = set()
        self.letters = ""  # of the labels that gold itself has
        self.aliases: dict[str, str] = {}  # other names of labels: the column's own
        self.whole: set[str] = set()  # what stands before the colons of the reference
        self.known = [BESIDE, *(group for group in ASKED_AS if group.search(question))]

    def add_name(self, name: str) -> None:
        if name and name not in self.names:
            self.names.append(name)

    def leads(self, text: str) -> bool:
        """Return whether the text only leads to a fact: "x的y是", "根据数据库查询结果"."""
        rest = ENDING.sub("", text).strip()
        return not rest or rest in self.whole or self.asks(rest) or self._is_alike(rest)

    def _is_alike(self, head: str) -> bool:
        """Return whether the head is a field in other words, of a name: "x的储存方法", "贮藏条件"."""
        for name in self.names:
            label = head.removeprefix(name).removeprefix("的")
            if FIELD.fullmatch(label):
                asked = MAY.sub("", without(self.words, self.names))  # without the 能 of 可能
                letters = asked + self.letters
                own = BESIDE.sub("", label)  # all may be 方法
                shared = sum(letter in letters for letter in own)
                # Without the name it may be a part of the field: 儿童用量
                enough = 2 * shared if head.startswith(f"{name}的") else shared
                # A field's name ends with its noun. 可能, 曾经 and the like stand behind it
                ends = own[-1:] in letters or label[-1] in self.letters
                denies = DENYING.search(label) or FORBIDS.search(label)
                return ends and enough >= len(own) and not denies
        return False

    def asks(self, text: str) -> bool:
        """Return whether the text consists of names, labels, plain words and parts of the question."""
        if len(text) > LONGEST or any(than not in self.asked for than in THAN.findall(text)):
            return False
        for words in (self.names, self.labels):
            text = without(text, words)
        if all(map(self.has, filter(HAS_WORD.search, text.split("\n")))):
            return True
        asked = DENIED.sub("\n", self.words)
        known = self.known
        if not FORBIDS.search(self.asked):
            if PURPOSE.search(asked) or (not self.names and MAY.search(asked)):
                known = [*known, MAY]
            elif "吃" in asked or "用" in asked:
                known = [TAKEN, *known]
        for pattern in known:
            text = pattern.sub("\n", text)
        return all(map(self.has, filter(HAS_WORD.search, text.split("\n"))))

    def place(self, words: str) -> tuple[int, ...]:
        """Return where the question has the words, or else what stands around 的: 最早的日期."""
        own = AROUND.sub("", words)
        places = []
        for part in [own] if own in self.asked else own.split("的"):
            # Not within a longer field: dose of maximum dose
            apart = re.search(rf"(?:^|[、,的] ?|the |{JOINT}){re.escape(part)}", self.asked)
            places.append(apart.end() - len(part) if apart else self.asked.find(part))
        return tuple(place for place in places if place >= 0)

    def has(self, part: str) -> bool:
        """Return whether the question has the part. English words and numbers count whole."""
        words = words_only(part)
        if not words:
            return part.strip() in self.asked
        if words.isascii():
            known = all(word in self.english for word in ENGLISH_WORD.findall(part))
            return known and not DENYING.search(part)
        if len(words) < SHORTEST_DENIAL and DENYING.search(words):
            return False
        # Outside numbers, and not denied
        before = r"(?<![\x00-\x7f])" if words[0].isascii() else ""
        behind = r"(?![\x00-\x7f])" if words[-1].isascii() else ""
        found = re.finditer(f"{before}{re.escape(words)}{behind}", self.words)
        return any(match.start() not in self.denied for match in found)


def without(text: str, words: Iterable[str]) -> str:
    """Return the text with a line break for each of the words, the longest first.

    A word in Latin letters does not stand within another: a column `n` is no part of `patients`.
    """
    for word in sorted(filter(None, words), key=lambda word: (-len(word), word)):
        if not word.isascii():
            text = text.replace(word, "\n")
        elif word in text:
            text = re.sub(rf"(?<![a-z]){re.escape(word)}(?=s?(?![a-z]))", "\n", text)
    return text
