"""The offline judge pays for quotes of gold. Other words need TEACHER_MODEL. Deterministic.

    await ReferenceJudge().judge(Case(question, answer, reference, context, gold))

Gold and answer are folded (`fold.py`) and cut at punctuation. A piece of gold in the answer is a
stated fact. Names of the question and polite frames are free. Every other piece is the answer's
own, and such an answer earns little, or nothing if it denies something.
"""

import json
import re
from collections.abc import Sequence
from itertools import pairwise, zip_longest
from math import prod

from scoring.case import Case, Verdict
from sql_agent.judge.fold import pieces
from sql_agent.judge.gold import PROGRAM, Gold, Places, read_gold, without_signs
from sql_agent.judge.groups import JOINTS, LINE_ENDS
from sql_agent.judge.heads import ADVICE, COPULA, DENYING, ENDING, is_free, without
from sql_agent.judge.nothing import honesty, says_nothing
from sql_agent.judge.topic import Topic

WITH_OWN_WORDS = 0.4  # of the share: the most that an answer with words of its own earns
OF_A_PROGRAM = 0.2  # of the score, where the answer is JSON or a table
BEGINNING = re.compile(f"^(?:{COPULA})")
ALL_OF = re.compile("(?:都|(?<!平)均)$")  # 甲、乙都有头痛
MOST_OWN = 40  # pieces of its own, beyond which an answer is not read on and earns nothing


class ReferenceJudge:
    name = "reference"

    async def judge(self, case: Case) -> Verdict:
        """Return the verdict. Without anything to compare with it is unscored ("no_reference")."""
        return self.compare(case)

    def compare(self, case: Case, by_reference: bool = True) -> Verdict:
        """Return the same as `judge`, for callers without an event loop.

        Without `by_reference` the reference adds only names and fields to gold rows or evidence.
        """
        encoded = json.dumps(case.gold or {}, ensure_ascii=False, default=str)
        gold = read_gold(case.question, case.reference, encoded, by_reference)
        if gold is None:
            return Verdict(None, cause="no_reference")
        if says_nothing(case):
            return Verdict(0.0, {"degenerate": 1.0})
        if gold.nothing:
            return Verdict(honesty(case.answer, f"{case.question}\n{case.reference}"))
        parts = {"facts": 1.0, "own": 1.0}
        if without_signs(case.answer) not in gold.wholes:
            reading = _Reading(case.answer, gold)
            parts["facts"] = max(map(reading.share, gold.forms), default=0.0)
            parts["own"] = reading.worth
        if PROGRAM.search(case.answer) and not gold.is_program:
            parts["prose"] = OF_A_PROGRAM
        return Verdict(prod(parts.values()), parts)


class _Reading:
    """An answer against gold: the facts it says, and its own pieces."""

    def __init__(self, answer: str, gold: Gold) -> None:
        self.gold = gold
        self.said: set[str] = set()
        self.told: set[tuple[str, str]] = set()  # facts, each with the owner it was said of
        self.own: list[str] = []
        self.topic = Topic(gold)
        self.first: str | None = ""  # fact of the last group. None if gold's groups are not kept
        self.before = ""  # fact that was said last
        self.listed: list[str] = []  # names right before, as 内科 of 内科、外科的床位分别是3、5
        names = gold.heads.names
        found = [(gold.bare(piece), sign) for piece, sign in pieces(gold.without_units(answer))]
        found = self._with_joined_fields(self._without_brackets(found))
        for (piece, sign), (following, _) in pairwise([*found, ("", "")]):
            is_known = self._states(piece) or self._leads(piece, sign) or is_free(piece)
            is_begun = ADVICE.fullmatch(piece + following)  # 如有不适，请及时就医
            if not (is_known or is_begun or gold.counts_rows(piece)):
                self.own.append(piece)
                if sign == ":" or gold.trailing_fact(piece):
                    self.topic.leave()
            if len(self.own) > MOST_OWN:
                break
            is_listed = sign == "、" and piece in names
            self.listed = [*self.listed, piece][-len(names) :] if is_listed else []
        if self.topic.stands_behind():
            self.told.clear()

    def _without_brackets(self, found: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the pieces with a name or field in brackets before its values: 8(甲) is 甲8."""
        names = self.gold.heads.names
        apart: list[tuple[str, str]] = []

        def is_value(at: int, nameless: bool) -> bool:
            text = apart[at][0]
            has_name = nameless and any(name in text for name in names)
            return bool(self.gold.trailing_facts(text)[0]) and not has_name

        for piece, sign in found:
            is_name = piece in names
            is_inside = sign == ")" and apart and apart[-1][1] == "("
            if not (is_inside and (is_name or self._is_field(piece)) and is_value(-1, is_name)):
                apart.append((piece, sign))
                continue
            apart[-1] = (apart[-1][0], ";" if is_name else ",")
            at = len(apart) - 1
            while is_name and at and apart[at - 1][1] not in LINE_ENDS and is_value(at - 1, True):
                at -= 1
            apart[at] = (f"{piece} {apart[at][0]}", apart[at][1])
        return apart

    def _with_joined_fields(self, found: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the pieces with fields of a list in one: 价格、产地和剂型分别为8、甲、片."""
        heads = self.gold.heads
        labels = tuple(filter(None, heads.labels))
        joined = [("", "")]
        for piece, sign in found:
            before, between = joined[-1]
            ends = without(before, heads.names).endswith(labels) and heads.leads(before)
            begins = without(piece, heads.names).startswith(labels)
            if between == "、" and ends and begins and before not in self.gold.places:
                joined[-1] = (f"{before}和{piece}", sign)
            else:
                joined.append((piece, sign))
        return joined[1:]

    def _is_field(self, piece: str) -> bool:
        is_known = piece in self.gold.heads.labels or piece in self.gold.heads.asked
        return is_known and len(self.gold.fields) > 1 and piece not in self.gold.places

    @property
    def worth(self) -> float:
        """1 without own pieces, 0 if one denies, else a part of the share that is gold's."""
        if not self.own:
            return 1.0
        if len(self.own) > MOST_OWN or any(map(DENYING.search, self.own)):
            return 0.0
        said = sum(map(len, self.said))
        return WITH_OWN_WORDS * said / (said + sum(map(len, self.own)))

    def share(self, form: Places) -> float:
        """Return the share, by length, of the form's facts that were said."""
        said = asked = 0
        for fact, places in form.items():
            owners = {owner for owner, _ in places}
            asked += len(fact) * len(owners)
            said += len(fact) * sum((fact, owner) in self.told for owner in owners)
        return said / asked

    def _states(self, piece: str) -> bool:
        names = self.gold.heads.names
        if piece in self.gold.places and self._say([piece]):
            if piece in names:
                self._enter(piece)
            return True
        facts, head = self.gold.trailing_facts(piece)
        if not facts:
            return False
        if ALL_OF.search(ENDING.sub("", without(head, names))):
            told_of = {name for name in names if name in head}.union(self.listed)
            owners = [{owner for owner, _ in self.gold.places[fact]} for fact in facts]
            if not told_of <= set.intersection(*owners):
                return False
        self._enter(head)
        tail = piece.rpartition(facts[-1])[2]
        # 80收缩压，120舒张压, but not 骨科的床位最多
        is_told = tail and not is_free(tail) and not self.gold.groups.heads_numbers(facts[-1])
        if is_told and len(self.gold.fields) > 1:
            self._enter(BEGINNING.sub("", tail))
            if not (self.topic.labels or self.topic.asked):
                return False
        is_said = self._say(facts)
        if len(facts) == 1 and facts[0] in names:  # as 乙 of "甲(8)和乙(12)"
            self._enter(facts[0])
        return is_said

    def _leads(self, piece: str, sign: str) -> bool:
        """Return whether the piece says only whose or which field the following is."""
        heads = self.gold.heads
        labels = JOINTS.sub("", without(piece, heads.labels))
        named = piece in heads.names or not labels.strip("\n")
        is_asked_before = sign == "?" and not self.said
        closed = sign in {*":()】]"} or is_asked_before or ENDING.search(piece) is not None
        if not named and not (closed and heads.leads(piece)):
            return False
        self._enter(piece)
        return True

    def _say(self, facts: Sequence[str]) -> bool:
        """Take the facts as said, if they may stand under the last name and field."""
        groups = self.gold.groups
        for fact, following in zip_longest(facts, facts[1:], fillvalue=""):
            places = [place for place in self.gold.places[fact] if self.topic.fits(*place)]
            if not places or groups.is_of_another(self.first or "", fact):
                return False
            is_head = following and groups.heads_numbers(fact)  # 骨科82
            begins_row = self._begins_row(fact)
            if not is_head and not self.topic.takes_in_order(fact, places, begins_row):
                return False
            self._follow(fact)
            self.topic.tell(fact, places)
            self.said.add(fact)
            self.told |= {(fact, owner) for owner, _ in places} | {(self.topic.owner or "", "")}
        return True

    def _begins_row(self, fact: str) -> bool:
        members = self.gold.groups.members
        return bool(self.first) and fact in members and self.before not in members

    def _follow(self, fact: str) -> None:
        """Take a fact as one of the last group, or as the first of the next.

        Values before what they are of, or two firsts in a row, are told in another order.
        """
        groups = self.gold.groups
        if fact in groups.members and self.first is not None:
            may_follow = {self.before, *groups.members.get(self.before, [fact])}
            self.first = fact if fact in may_follow else None
        elif not self.first and fact in groups.roles:
            self.first = None
        self.before = fact

    def _enter(self, head: str) -> None:
        self.told |= {(name, "") for name in self.topic.enter(head, self.listed)}
