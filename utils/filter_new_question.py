"""Keep the questions that are new: neither in existing sets nor earlier in the file itself.

    python utils/filter_new_question.py candidates.jsonl --against data/train.parquet data/test.parquet \
        --output outputs/new.jsonl

Compared are the exact text, the text without width, case, spaces and punctuation, and its pairs of characters (--near).
With --embedding-model also the cosine of embeddings (--cosine) from an OpenAI-compatible or any other endpoint litellm
knows; TEACHER_API_KEY is its key. The output has the new rows as they were; OUT.dropped.jsonl has a row for each other
question: {id, question, method, score, known: {file, id, question}}. In: JSONL or Parquet with a column `question`.
Time is linear in the number of questions, except embeddings: every new one is compared with every known one.
Exit codes: 0 done, 1 the endpoint failed (vectors got so far are kept), 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common.command import new_parser, number, run_command
from common.files import FileError, refuse_existing
from common.jsonl import write_jsonl
from common.llm import reveal
from common.settings import load_settings
from data.load import DataError, read_records
from data.questions.near_duplicates import NEAR, NearDuplicates
from scoring.reference.text import words_only
from utils.curation.llm_pass import beside

if TYPE_CHECKING:
    import numpy

    from utils.curation.embeddings import Embeddings

PROGRAM = "filter_new_question"
BLOCK = 512  # known questions whose vectors are held at once
JSON_KINDS = str | int | float | list | dict | None
Row = dict[str, Any]


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
    """A growing set of questions that tells which of them another one repeats; `near`: least Jaccard similarity."""

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
        """What the question repeats, by the strictest method that sees it; one that repeats nothing is remembered."""
        question = source.question
        if question in self._exact:
            return Match("exact", 1.0, self._exact[question])
        if words_only(question) in self._normalised:
            return Match("normalised", 1.0, self._normalised[words_only(question)])
        near = self._near.nearest(question)
        if near:
            return Match("near", near[1], self._normalised[near[0]])
        self.add(source)
        return None


def read_questions(path: Path) -> Iterator[tuple[Source, Row]]:
    """Every row with its id (`id`, `qid` or its number) and question.

    Raises:
        DataError, FileError: a row can not be read, or has no question.
    """
    for place, row in read_records(path):
        if isinstance(row, DataError):
            raise row
        question = row.get("question")
        if not isinstance(question, str) or not question.strip():
            raise FileError(f"{path}, row {place}, column question: {question!r}, expected text")
        for name, value in row.items():
            if not isinstance(value, JSON_KINDS):
                raise FileError(f"{path}, row {place}, column {name}: a value that JSON can not hold")
        yield Source(str(path), str(row.get("id") or row.get("qid") or place), question), row


async def embedding_matches(
    new: list[Source], against: Sequence[Path], embeddings: Embeddings, cosine: float
) -> dict[int, Match]:
    """By place in `new`: the known question, or the earlier new one, whose vector is nearest, if it is near enough.

    Memory: the vectors of `new` and of one block of known questions.
    """
    vectors = await embeddings.of([source.question for source in new])
    matches: dict[int, Match] = {}
    known = (source for path in against for source, _ in read_questions(path))
    for block in iter(lambda: list(islice(known, BLOCK)), []):
        scores = await embeddings.of([source.question for source in block]) @ vectors.T
        for place, (best, score) in enumerate(zip(scores.argmax(axis=0), scores.max(axis=0), strict=True)):
            if score >= cosine and (place not in matches or score > matches[place].score):
                matches[place] = Match("embedding", float(score), block[best])
    return matches | _repetitions(new, vectors, matches.keys(), cosine)


def _repetitions(new: list[Source], vectors: numpy.ndarray, known: Collection[int], cosine: float) -> dict[int, Match]:
    """Which of the others repeats an earlier one of them."""
    matches: dict[int, Match] = {}
    kept: list[int] = []
    others = vectors.copy()  # its first len(kept) rows are those of the kept ones
    for place in range(len(new)):
        if place in known:
            continue
        scores = others[: len(kept)] @ vectors[place]
        if kept and scores.max() >= cosine:
            matches[place] = Match("embedding", float(scores.max()), new[kept[int(scores.argmax())]])
        else:
            others[len(kept)] = vectors[place]
            kept.append(place)
    return matches


def compared(arguments: argparse.Namespace) -> Iterator[tuple[Source, Row, Match | None]]:
    """Every row of the input and what it repeats, by all methods asked for; a new one is known from then on."""
    known = KnownQuestions(arguments.near)
    for source, _ in (item for path in arguments.against for item in read_questions(path)):
        known.add(source)
    rows = ((source, row, known.match_or_add(source)) for source, row in read_questions(arguments.input))
    if not arguments.embedding_model:
        yield from rows
        return
    from utils.curation.embeddings import Embeddings

    held = list(rows)
    new = [source for source, _, match in held if match is None]
    settings = load_settings()
    url = arguments.embedding_base_url or settings.teacher_base_url
    embeddings = Embeddings(arguments.embedding_model, url, reveal(settings.teacher_api_key), settings.llm_cache)
    matches = asyncio.run(embedding_matches(new, arguments.against, embeddings, arguments.cosine)) if new else {}
    print(f"{PROGRAM}: {embeddings.calls} embedding calls, {embeddings.cached} vectors kept earlier", file=sys.stderr)
    places = iter(range(len(new)))
    for source, row, match in held:
        yield source, row, matches.get(next(places)) if match is None else match


def filter_rows(arguments: argparse.Namespace) -> None:
    dropped_file = beside(arguments.output, "dropped")
    for file in (arguments.output, dropped_file):
        refuse_existing(file, arguments.force)
    dropped: list[tuple[Source, Match]] = []

    def new() -> Iterator[Row]:
        for source, row, match in compared(arguments):
            if match is None:
                yield row
            else:
                dropped.append((source, match))

    count = write_jsonl(arguments.output, new(), arguments.force)
    write_jsonl(dropped_file, (match.row(source) for source, match in dropped), arguments.force)
    methods = Counter(match.method for _, match in dropped)
    known = ", ".join(f"{number:,} {method}" for method, number in methods.items())
    print(f"{PROGRAM}: {count:,} new in {arguments.output}; known: {known or 'none'} ({dropped_file})")


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    add = parser.add_argument
    share = number(float, lambda value: 0 < value <= 1, "above 0 and at most 1")
    add("input", type=Path, help="JSONL or Parquet with the column question")
    add("--against", type=Path, nargs="*", default=[], metavar="FILE", help="existing sets, JSONL or Parquet")
    add("--output", type=Path, required=True, metavar="OUT.jsonl", help="the new rows; the others: OUT.dropped.jsonl")
    add("--near", type=share, default=NEAR, help=f"least Jaccard similarity of a repetition (default: {NEAR})")
    add("--embedding-model", metavar="NAME", help="litellm's name of an embedding model, such as openai/NAME")
    add("--embedding-base-url", metavar="URL", help="its endpoint (default: TEACHER_BASE_URL)")
    add("--cosine", type=share, default=0.92, help="least cosine of a repetition (default: 0.92)")
    add("--force", action="store_true", help="replace existing outputs")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    return run_command(PROGRAM, lambda: filter_rows(arguments), "nothing was written, and vectors got so far are kept")


if __name__ == "__main__":
    sys.exit(main())
