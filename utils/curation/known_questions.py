"""Whether a question is known already, by ever looser comparison: exact, normalised, MinHash.

    known = KnownQuestions(near=0.8)
    known.add(Source("train.parquet", "q1", "布洛芬怎么吃？"))
    known.find("布洛芬 怎么吃")       # Match("normalised", 1.0, Source(...))

`normalised` ignores width, case, white space and punctuation; `minhash` is `data/questions/near_duplicates.py`. Time is
linear in the number of questions; memory is MinHash's, about 7 KB a question. Used by `utils/filter_new_question.py`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from data.questions.near_duplicates import NearDuplicates
from scoring.reference.text import words_only


@dataclass(frozen=True)
class Source:
    """Where a question stands."""

    file: str
    id: str
    question: str


@dataclass(frozen=True)
class Match:
    """The known question that another one repeats, by which method, and how similar both are (1: the same)."""

    method: str
    score: float
    source: Source

    def row(self, dropped: Source) -> dict[str, Any]:
        """The row of the report for the question that was dropped."""
        what = {"id": dropped.id, "question": dropped.question, "method": self.method}
        return what | {"score": round(self.score, 4), "known": asdict(self.source)}


class KnownQuestions:
    """A growing set of questions that tells which of them another one repeats; `near` is MinHash's least similarity."""

    def __init__(self, near: float) -> None:
        self._exact: dict[str, Source] = {}
        self._normalised: dict[str, Source] = {}
        self._near = NearDuplicates(near)

    def add(self, source: Source) -> None:
        """Remember it; of equal ones the first stays."""
        self._exact.setdefault(source.question, source)
        words = words_only(source.question)
        if self._normalised.setdefault(words, source) is source:
            self._near.add(words, source.question)

    def match_or_add(self, source: Source) -> Match | None:
        """What the question repeats; one that repeats nothing is remembered."""
        match = self.find(source.question)
        if match is None:
            self.add(source)
        return match

    def find(self, question: str) -> Match | None:
        """What it repeats, by the strictest method that sees it."""
        if question in self._exact:
            return Match("exact", 1.0, self._exact[question])
        if words_only(question) in self._normalised:
            return Match("normalised", 1.0, self._normalised[words_only(question)])
        near = self._near.nearest(question)
        return Match("minhash", near[1], self._normalised[near[0]]) if near else None
