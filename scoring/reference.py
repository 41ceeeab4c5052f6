"""The offline judge: it pays what is quoted; other words need TEACHER_MODEL. Deterministic, no
network.

    await ReferenceJudge().judge(Case(question, answer, reference, context, gold))
    ReferenceJudge().score(question="...", answer="...", reference="...", rows=[{"dosage": "一次15毫克"}])

Gold and answer are written in one form (`scoring.text`) and cut at punctuation. A piece of the
answer that is a piece of gold is a fact that is said. A piece that names what is asked about, or is
one of a few polite frames, is free. Every other piece is the answer's own, and an answer with words
of its own earns little, one that denies nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from scoring.abstention import NOTHING, UNSURE, honesty
from scoring.case import Case, Verdict
from scoring.degenerate import is_degenerate
from scoring.gold import PROGRAM, TOTAL, Form, Gold, read_gold
from scoring.pieces import (
    ABOUT,
    ENDING,
    FRAME,
    HAS_WORD,
    HELPERS,
    JOINT,
    OTHER_NUMBER,
    WORDS,
    is_free,
    key_of,
    pieces_of,
    split_head,
    without_frames,
)
from scoring.text import words_only

WITH_OWN_WORDS = 0.4  # of the share: the most that an answer with words of its own earns
OF_A_PROGRAM = 0.2  # of the score, where the answer is JSON or a table
LONGEST_LABEL = 10  # characters of a field's name that neither question nor gold has
MOST_JOINED = 4  # pieces of the answer that may be one piece of gold

DENYING = re.compile(
    r"不|没|未|无|非|误|错|反|否|假|谣|虚|禁|勿|别|莫|可以|放心|撤回|更正|纠正|作废|忽略|[≠¬❌✗✘✖🚫]|(?<![a-z])(?:no|not|none|never"
    r"|wrong|false|ignore|incorrect|untrue|untruth|myth|opposite|contrary|disregard|isn|aren|doesn|don|won|can)(?![a-z])"
)
ENGLISH_HEAD = re.compile(
    r"(?:the )?([a-z]+(?: [a-z]+){0,2}) (?:of|for) (.+)|(.+)'s ([a-z]+(?: [a-z]+){0,2})"
)
IN_A_LABEL = re.compile(
    r"\d|是|为|不(?:[是能可会实对要应得用为含属同该宜]|$)|没|未|误|错|反(?:[之对面而]|$)|否|假|谣"
    r"|传[言说闻]|虚|旧|非|无|另|其他|别的"
)
# Words that a head may have beside those of the question. The second kind says that something may be
# done, which is wrong before what must not be: only where the question asks for it.
PLAIN = "方面|相关|有关|对应|具体|一共|总共|方法|如下|记录|的|中|里|共|其|该|时|了|种|对"
MAY = re.compile("可以|选用|使用|服用|应用|治疗|用于|可|能|用|吃|治")
PLAIN_WORDS = re.compile(f"\n|{PLAIN}")
BESIDE_NAMES = re.compile(f"\n|{PLAIN}|{WORDS}")
BEFORE_NUMBER = re.compile(f"{OTHER_NUMBER}$")
BEHIND_NUMBER = re.compile(OTHER_NUMBER)
JOINT_BEFORE, JOINT_BEHIND = re.compile(f"^(?:{JOINT})"), re.compile(f"(?:{JOINT})$")
FORBIDS = re.compile("禁|忌|慎|不宜|不能|不可|避免")


class ReferenceJudge:
    """Scores by comparison with gold values, evidence and the reference answer: it pays what is
    quoted.
    """

    name = "reference"

    async def judge(self, case: Case) -> Verdict:
        """Return the verdict; unscored, with the cause "no_reference", if the case has nothing to
        compare with.
        """
        return self.compare(case)

    def score(
        self,
        *,
        question: str,
        answer: str,
        reference: str = "",
        rows: Sequence[Mapping[str, Any]] | None = None,
    ) -> float:
        """Return the score in [0, 1] of one answer.

        `rows` are what the gold query returns; without rows `reference` decides.

        Raises:
            ValueError: neither a reference nor a row to compare with.
        """
        columns = list(dict.fromkeys(column for row in rows or [] for column in row))
        cells = [[row.get(column) for column in columns] for row in rows or []]
        gold = {"structured_gt": {"columns": columns, "rows": cells}} if cells else None
        verdict = self.compare(Case(question, answer, reference, gold=gold))
        if verdict.score is None:
            raise ValueError(
                "nothing to compare with: reference is empty and there are no rows; give one of them"
            )
        return verdict.score

    def bears_out(self, case: Case) -> Verdict:
        """Return the verdict by the gold rows or the evidence alone; the reference only adds names
        and fields, and no facts.
        """
        return self.compare(case, by_reference=False)

    def compare(self, case: Case, by_reference: bool = True) -> Verdict:
        """Return the same as `judge`, for callers without an event loop."""
        encoded = json.dumps(case.gold or {}, ensure_ascii=False, default=str)
        gold = read_gold(case.question, case.reference, encoded, by_reference)
        if gold is None:
            return Verdict(None, cause="no_reference")
        if is_degenerate(case):
            return Verdict(0.0, {"degenerate": 1.0})
        if gold.nothing:
            return Verdict(honesty(case.answer, f"{case.question}\n{case.reference}"))
        return _compared(case.answer, gold)


def _compared(answer: str, gold: Gold) -> Verdict:
    parts = {"facts": 1.0, "own": 1.0}
    if without_frames(answer) not in gold.wholes:
        reading = _Reading(answer, gold)
        parts["facts"] = max(map(reading.share, gold.forms), default=0.0)
        parts["own"] = reading.worth
    if PROGRAM.search(answer) and not gold.is_program:
        parts["prose"] = OF_A_PROGRAM
    score = 1.0
    for part in parts.values():
        score *= part
    return Verdict(min(1.0, score), parts)


class _Reading:
    """An answer against gold: which facts it says, and which pieces are its own."""

    def __init__(self, answer: str, gold: Gold) -> None:
        gold.take_apart()
        self.gold, self.said, self.own, self.abstained = gold, set[str](), list[str](), False
        self.owner, self.label, self.of_another = "", "", False
        pieces, place = pieces_of(answer), 0
        while place < len(pieces):
            place += self._read(pieces, place)

    @property
    def worth(self) -> float:
        """1 without own pieces, 0 where one denies, else a part of the share that is gold's."""
        if not self.own:
            return 1.0
        if self.abstained or any(DENYING.search(piece) for piece in self.own):
            return 0.0
        said = sum(map(len, self.said))
        return WITH_OWN_WORDS * said / (said + sum(map(len, self.own)))

    def share(self, form: Form) -> float:
        """The weight of the form's facts that were said, of all."""
        said = sum(len(fact) for fact in form.facts if fact in self.said)
        return said / form.weight if form.weight else 0.0

    def _read(self, pieces: Sequence[tuple[str, str]], place: int) -> int:
        """Read the piece at a place, or several that are one piece of gold; how many were read."""
        for many in range(min(MOST_JOINED, len(pieces) - place), 1, -1):
            joined = "".join(piece for piece, _ in pieces[place : place + many])
            if joined in self.gold.written and self._say([self.gold.written[joined]]):
                return many
        if key_of(pieces[place][0]) in self.gold.known and self._say([key_of(pieces[place][0])]):
            return 1
        piece, sign = pieces[place]
        if self._leads(piece, sign):
            self._enter(piece)
        elif not is_free(piece) and not self._say_in(piece):
            self.own.append(piece)
            self.of_another = self.of_another or sign == ":" or self._ends_in_fact(piece)
            self.abstained = self.abstained or bool(NOTHING.search(piece) or UNSURE.search(piece))
        return 1

    def _say(self, facts: Sequence[str]) -> bool:
        """Take the facts as said, if they may stand under the name and field that were named last."""
        if self.of_another or not all(self._in_place(fact) for fact in facts):
            return False
        self.said.update(facts)
        items = (item for fact in facts for item in fact.split("\t"))
        self.said.update(item for item in items if item in self.gold.known)
        return True

    def _in_place(self, fact: str) -> bool:
        return any(
            (not owner or not self.owner or owner == self.owner)
            and (not label or not self.label or label == self.label)
            for owner, label in self.gold.known[fact]
        )

    def _leads(self, piece: str, sign: str) -> bool:
        """Whether the piece only says whose or which field what follows is."""
        if piece in self.gold.names or piece in self.gold.labels:
            return True
        if HELPERS.fullmatch(piece) or ENDING.fullmatch(piece):
            return False
        closed = sign == ":" or ABOUT.match(piece) or ENDING.search(piece)
        return bool(closed) and self._is_head(piece, True)

    def _say_in(self, piece: str) -> bool:
        """Whether the piece is a head and facts, one behind the other; then they are said."""
        if self.gold.number and self._is_count(piece):
            return self._say([self.gold.count])
        found: list[str] = []
        rest, joint = piece, None
        while rest:
            fact = next(
                (one for one in self.gold.by_end.get(rest[-1], ()) if _ends_with(rest, one)), None
            )
            if fact is None:
                break
            found.append(self.gold.written[fact])
            rest = rest.removesuffix(fact)
            joint = None if key_of(rest) in self.gold.known else JOINT_BEHIND.search(rest)
            rest = (rest[: joint.start()] if joint else rest).strip()
            if not joint and self._is_head(rest):  # "X的Y是是": the copula is no second fact
                break
        if not found or HELPERS.fullmatch(piece) or (rest and (joint or not self._is_head(rest))):
            return False
        self._enter(rest)
        return self._say(found)

    def _ends_in_fact(self, piece: str) -> bool:
        return any(_ends_with(piece, fact) for fact in self.gold.by_end.get(piece[-1], ()))

    def _is_count(self, piece: str) -> bool:
        """Whether the piece is gold's number, with a measure word and words of the question."""
        for match in TOTAL.finditer(piece):
            heads = [piece[: match.start()], piece[: match.start(1)]]
            tail = piece[match.end() :]
            led = not heads[0] or any(map(self._is_head, heads))
            if match[1] == self.gold.number and led:
                alone = not BEFORE_NUMBER.search(heads[1]) and not BEHIND_NUMBER.match(tail)
                return alone and self._in_words_of_the_question(tail, PLAIN_WORDS)
        return False

    def _is_head(self, text: str, closed: bool = False) -> bool:
        """Whether the text only names what is asked about: "X的Y是", "根据数据库查询结果", "X用药的禁忌有".

        closed: a colon stands behind it.
        """
        if ENDING.fullmatch(text) or HELPERS.fullmatch(text):
            return ENDING.fullmatch(text) is not None
        framed = FRAME.match(text)
        rest = text[framed.end() :].strip() if framed else text
        return self._names_asked(text, closed) or self._names_asked(rest, closed)

    def _names_asked(self, text: str, closed: bool) -> bool:
        rest = JOINT_BEFORE.sub("", ENDING.sub("", text)).strip()
        if any(not one or one in self.gold.heads or one in self.gold.names for one in (text, rest)):
            return True
        if HELPERS.fullmatch(rest):
            return False
        if len(rest) > 1 and self._is_asked(rest):
            return True
        if self._in_words_of_the_question(rest):
            return True
        return (closed or rest != text) and self._names_and_labels(rest)

    def _names_and_labels(self, rest: str) -> bool:
        """Whether the text is a name that is asked about and a label, which gold need not have."""
        english = ENGLISH_HEAD.fullmatch(rest)
        about, label = (
            (english[2] or english[3], english[1] or english[4]) if english else split_head(rest)
        )
        named = about in self.gold.names or (len(about) > 1 and self._is_asked(about))
        fits = len(label) <= (3 * LONGEST_LABEL if english else LONGEST_LABEL)
        labels = self.gold.labels
        if not named or not fits or any(label in one for one in [*labels, self.gold.question]):
            return named and fits
        may_be = not labels or any(one in label for one in labels)
        return may_be and not IN_A_LABEL.search(label)

    def _in_words_of_the_question(self, rest: str, words: re.Pattern[str] = BESIDE_NAMES) -> bool:
        """Whether nothing is left of the text without names, fields and plain words but parts of
        the question.
        """
        asked = self.gold.question
        for known in sorted({*self.gold.names, *self.gold.labels}, key=len, reverse=True):
            rest = rest.replace(known, "\n")
        left = words.split(rest)
        if MAY.search(asked) and not FORBIDS.search(asked):
            left = [part for one in left for part in MAY.split(one)]
        left = [part for part in left if HAS_WORD.search(part)]
        return not DENYING.search("".join(left)) and all(map(self._is_asked, left))

    def _is_asked(self, text: str) -> bool:
        """Whether the text is a part of the question; an English word or a number is a whole one."""
        if text.isascii() and text.strip().isalnum():
            whole = rf"(?<![a-z0-9]){text.strip()}(?![a-z0-9])"
            return re.search(whole, self.gold.asked) is not None
        words = words_only(text)
        return words in self.gold.question if words else text.strip() in self.gold.asked

    def _enter(self, head: str) -> None:
        """Keep the name and field that a head names: what follows is said of them."""
        names = [name for name in self.gold.names if name in head]
        labels = [label for label in self.gold.labels if label in head]
        if names:
            self.owner, self.label, self.of_another = max(names, key=len), "", False
        if labels:
            self.label = max(labels, key=len)


def _ends_with(text: str, fact: str) -> bool:
    """Whether the text ends with the fact, and not inside a number or an English word."""
    start = len(text) - len(fact)
    before = text[start - 1] if start > 0 else ""
    number = (fact[0].isdecimal() or not fact[0].isalnum()) and BEFORE_NUMBER.search(before)
    inside = number or (before.isascii() and before.isalnum() and fact[0].isascii())
    return text.endswith(fact) and not inside
