"""Whether a question is known already, by ever looser comparison: exact, normalised, MinHash.

    known = KnownQuestions(near=0.8)
    known.add(Source("train.parquet", "q1", "布洛芬怎么吃？"))
    known.find("布洛芬 怎么吃")       # Match("normalised", 1.0, Source(...))

`normalised` ignores width, case, white space and punctuation; `minhash` is `data/questions/near_duplicates.py`. Time is
linear in the number of questions. Memory: only what MinHash remembers. Used by `utils/filter_new_question.py`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from data.questions.near_duplicates import NearDuplicates
from scoring.reference.text import words_only
from utils.curation.text_set import TextSet


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

    def row(self, id: str, question: str) -> dict[str, Any]:
        """The row of the report for the question that was dropped."""
        score = round(self.score, 4)
        return {"id": id, "question": question, "method": self.method, "score": score, "known": asdict(self.source)}


class KnownQuestions:
    """A growing set of questions that tells which of them another one repeats; `near` is MinHash's least similarity."""

    def __init__(self, near: float) -> None:
        self._exact, self._normalised, self._near = TextSet(), TextSet(), NearDuplicates(near)

    def __enter__(self) -> KnownQuestions:
        return self

    def __exit__(self, *_: object) -> None:
        self._exact.__exit__()
        self._normalised.__exit__()

    def add(self, source: Source) -> None:
        """Remember it; of equal ones the first stays."""
        label = json.dumps(asdict(source), ensure_ascii=False)
        self._exact.add(source.question, label)
        if self._normalised.add(words_only(source.question), label):
            self._near.add(label, source.question)

    def match_or_add(self, source: Source) -> Match | None:
        """What the question repeats; one that repeats nothing is remembered."""
        match = self.find(source.question)
        if match is None:
            self.add(source)
        return match

    def find(self, question: str) -> Match | None:
        """What it repeats, by the strictest method that sees it."""
        for method, known, form in (
            ("exact", self._exact, question),
            ("normalised", self._normalised, words_only(question)),
        ):
            label = known.label(form)
            if label is not None:
                return Match(method, 1.0, Source(**json.loads(label)))
        near = self._near.nearest(question)
        return Match("minhash", near[1], Source(**json.loads(near[0]))) if near else None
