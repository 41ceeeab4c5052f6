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
from collections.abc import Mapping, Sequence
from typing import Any

from scoring.case import Case, Verdict
from sql_agent.judge.abstention import honesty
from sql_agent.judge.degenerate import is_degenerate
from sql_agent.judge.gold import PROGRAM, Form, Gold, read_gold
from sql_agent.judge.pieces import (
    ABOUT,
    DENYING,
    ENDING,
    is_free,
    key_of,
    pieces_of,
    without_frames,
)

WITH_OWN_WORDS = 0.4  # of the share: the most that an answer with words of its own earns
OF_A_PROGRAM = 0.2  # of the score, where the answer is JSON or a table
AFFIRMED = {"是", "有", "yes"}  # facts behind which the question may be said as a sentence
MOST_JOINED = 4  # pieces of the answer that may be one piece of gold
MOST_OWN = 40  # pieces of its own, beyond which an answer is not read on and earns nothing


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
        self.gold, self.said, self.own = gold, set[str](), list[str]()
        self.owner, self.label, self.of_another = "", "", False
        pieces, place = pieces_of(answer), 0
        while place < len(pieces) and len(self.own) <= MOST_OWN:
            place += self._read(pieces, place)

    @property
    def worth(self) -> float:
        """1 without own pieces, 0 where one denies, else a part of the share that is gold's."""
        if not self.own:
            return 1.0
        if len(self.own) > MOST_OWN or any(map(DENYING.search, self.own)):
            return 0.0
        said = sum(map(len, self.said))
        return WITH_OWN_WORDS * said / (said + sum(map(len, self.own)))

    def share(self, form: Form) -> float:
        """Return the share, by weight, of the form's facts that were said."""
        return sum(len(fact) for fact in form.facts if fact in self.said) / form.weight

    def _read(self, pieces: Sequence[tuple[str, str]], place: int) -> int:
        """Read the piece at a place, or several that are one piece of gold; how many were read."""
        for many in range(min(MOST_JOINED, len(pieces) - place), 1, -1):
            joined = "".join(piece for piece, _ in pieces[place : place + many])
            if joined in self.gold.written and self._say([self.gold.written[joined]]):
                return many
        piece, sign = pieces[place]
        if not self._states(piece) and not self._leads(piece, sign):
            self.own.append(piece)
            self.of_another = self.of_another or sign == ":" or self.gold.ends_in_fact(piece)
        return 1

    def _states(self, piece: str) -> bool:
        """Return whether the piece is a fact, or facts behind a head, and take them as said."""
        for text in dict.fromkeys((piece, self.gold.before_label(piece))):
            if key_of(text) in self.gold.places and self._say([key_of(text)]):
                return True
            facts, head = self.gold.facts_at_end(text)
            if facts:
                self._enter(head)
                return self._say(facts)
        return False

    def _leads(self, piece: str, sign: str) -> bool:
        """Return whether the piece claims nothing: a frame, or whose or which field what follows is."""
        heads = self.gold.heads
        named = piece in heads.names.words or piece in heads.labels.words
        closed = sign in {":", "?", "(", ")"} or ABOUT.match(piece) or ENDING.search(piece)
        if named or (closed and not ENDING.fullmatch(piece) and heads.leads(piece)):
            self._enter(piece)
            return True
        return is_free(piece) or bool(self.said & AFFIRMED and heads.restates(piece))

    def _say(self, facts: Sequence[str]) -> bool:
        """Take the facts as said, if they may stand under the name and field that were named last."""
        if self.of_another or not all(map(self._in_place, facts)):
            return False
        self.said.update(facts)
        for fact in facts:
            self.said |= self.gold.inside.get(fact, set())
        items = (item for fact in facts for item in fact.split("\t"))
        self.said.update(item for item in items if item in self.gold.places)
        return True

    def _in_place(self, fact: str) -> bool:
        return any(
            (not owner or not self.owner or owner == self.owner)
            and (not label or not self.label or label == self.label)
            for owner, label in self.gold.places[fact]
        )

    def _enter(self, head: str) -> None:
        """Keep the name and field that a head names: what follows is said of them."""
        names, labels = (
            words.split(head)[0] for words in (self.gold.heads.names, self.gold.heads.labels)
        )
        if names:
            self.owner, self.label, self.of_another = max(names, key=len), "", False
        if labels:
            self.label = max(labels, key=len)
