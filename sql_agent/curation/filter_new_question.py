"""Keep the questions that are new: neither in existing sets nor earlier in the file itself.

    python utils/filter_new_question.py candidates.jsonl --against data/train.parquet data/test.parquet \
        --output outputs/new.jsonl

Compared are the exact text, the text without width, case, spaces and punctuation, and its pairs of
characters (--near). With --embedding-model also the cosine of embeddings (--cosine) from an
OpenAI-compatible or any other endpoint litellm knows; TEACHER_API_KEY is its key. The output has
the new rows as they were; OUT.dropped.jsonl has a row for each other question: {id, question,
method, score, known: {file, id, question}}. In: JSONL or Parquet with a column `question`. Time is
linear in the number of questions, except embeddings: every new one is compared with every known
one. Exit codes: 0 done, 1 the endpoint failed (vectors got so far are kept), 2 wrong usage, 130
interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from common.command import new_parser, number, run_command
from common.files import FileError, refuse_existing, refuse_inputs
from common.jsonl import write_jsonl
from common.llm import reveal
from common.settings import load_settings
from common.terminal import watched
from scoring.text import words_only
from sql_agent.curation.llm_pass import beside
from sql_agent.curation.near_duplicates import NEAR, NearDuplicates
from sql_agent.intake.question_files import DataError, read_records

PROGRAM = "filter_new_question"
BLOCK = 64  # new questions that are compared at once
JSON_KINDS = str | int | float | list | dict | None
Row = dict[str, Any]


class Source(NamedTuple):
    """A question with its file and id."""

    file: str
    id: str
    question: str


def match(method: str, score: float, known: Source) -> Row:
    """Return the description of a repetition: the method that found it, the similarity (1: the
    same), and the question it repeats.
    """
    return {"method": method, "score": round(score, 4), "known": known._asdict()}


class KnownQuestions:
    """A growing set of questions that finds which of them another one repeats; `near`: least
    Jaccard similarity.
    """

    def __init__(self, near: float) -> None:
        self.by_words: dict[str, Source] = {}
        self._exact: dict[str, Source] = {}
        self._near = NearDuplicates(near)

    def add(self, source: Source) -> None:
        """Remember a question; of equal ones the first stays."""
        self._exact.setdefault(source.question, source)
        words = words_only(source.question)
        if self.by_words.setdefault(words, source) is source:
            self._near.add(words, source.question)

    def match_or_add(self, source: Source) -> Row | None:
        """Return what the question repeats, by the strictest method that finds it; a question that
        repeats nothing is remembered.
        """
        if same := self._exact.get(source.question):
            return match("exact", 1.0, same)
        if same := self.by_words.get(words_only(source.question)):
            return match("normalised", 1.0, same)
        if near := self._near.nearest(source.question):
            return match("near", near[1], self.by_words[near[0]])
        self.add(source)
        return None


def read_questions(path: Path) -> Iterator[tuple[Source, Row]]:
    """Yield every row with its id (`id`, `qid` or its number) and question.

    Raises:
        DataError, FileError: a row cannot be read, or has no question.
    """
    for place, row in read_records(path):
        if isinstance(row, DataError):
            raise row
        question = row.get("question")
        if not isinstance(question, str) or not question.strip():
            raise FileError(f"{path}, row {place}, column question: {question!r}, expected text")
        for name, value in row.items():
            if not isinstance(value, JSON_KINDS):
                raise FileError(
                    f"{path}, row {place}, column {name}: a value that JSON can not hold"
                )
        yield Source(str(path), str(row.get("id") or row.get("qid") or place), question), row


def embedding_matches(
    arguments: argparse.Namespace, sources: list[Source], old: int
) -> dict[Source, Row]:
    """Return which sources from position `old` on repeat an earlier one: the one with the nearest
    vector, if it is near enough.

    Memory holds all vectors.
    """
    import numpy

    from sql_agent.curation.embeddings import Embeddings

    settings = load_settings()
    url = arguments.embedding_base_url or settings.teacher_base_url
    embeddings = Embeddings(
        arguments.embedding_model, url, reveal(settings.teacher_api_key), settings.llm_cache
    )
    vectors = asyncio.run(embeddings.of([source.question for source in sources]))
    print(
        f"{PROGRAM}: {embeddings.calls} embedding calls, {embeddings.cached} vectors kept earlier",
        file=sys.stderr,
    )
    matches = {}
    kept = numpy.arange(len(sources)) < old
    for start in range(old, len(sources), BLOCK):
        for place, row in enumerate(
            vectors[start : start + BLOCK] @ vectors[: start + BLOCK].T, start
        ):
            cosines = numpy.where(kept[: len(row)], row, -1)
            best = int(cosines.argmax())
            if cosines[best] >= arguments.cosine:
                matches[sources[place]] = match("embedding", float(cosines[best]), sources[best])
            else:
                kept[place] = True
    return matches


def filter_rows(arguments: argparse.Namespace) -> None:
    dropped_file = beside(arguments.output, "dropped")
    refuse_inputs((arguments.output, dropped_file), (arguments.input, *arguments.against))
    for file in (arguments.output, dropped_file):
        refuse_existing(file, arguments.force)
    known = KnownQuestions(arguments.near)
    for source, _ in (
        item for path in arguments.against for item in watched(read_questions(path), path.name)
    ):
        known.add(source)
    old = len(known.by_words)
    asked = watched(read_questions(arguments.input), arguments.input.name)
    rows = [(source, row, known.match_or_add(source)) for source, row in asked]
    sources = [*known.by_words.values()]
    same = (
        embedding_matches(arguments, sources, old)
        if arguments.embedding_model and sources[old:]
        else {}
    )
    new = [row for source, row, found in rows if not found and source not in same]
    repeated = [
        (source, found or same[source]) for source, _, found in rows if found or source in same
    ]
    dropped = [
        {"id": source.id, "question": source.question, **found} for source, found in repeated
    ]
    count = write_jsonl(arguments.output, new, arguments.force)
    write_jsonl(dropped_file, dropped, arguments.force)
    methods = Counter(row["method"] for row in dropped)
    found = ", ".join(f"{number:,} {method}" for method, number in methods.items())
    print(
        f"{PROGRAM}: {count:,} new in {arguments.output}; known: {found or 'none'} ({dropped_file})"
    )


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    add = parser.add_argument
    share = number(float, lambda value: 0 < value <= 1, "above 0 and at most 1")
    add("input", type=Path, help="JSONL or Parquet with the column question")
    add(
        "--against",
        type=Path,
        nargs="*",
        default=[],
        metavar="FILE",
        help="existing sets, JSONL or Parquet",
    )
    add(
        "--output",
        type=Path,
        required=True,
        metavar="OUT.jsonl",
        help="the new rows; the others: OUT.dropped.jsonl",
    )
    add(
        "--near",
        type=share,
        default=NEAR,
        help=f"least Jaccard similarity of a repetition (default: {NEAR})",
    )
    add(
        "--embedding-model",
        metavar="NAME",
        help="litellm's name of an embedding model, such as openai/NAME",
    )
    add("--embedding-base-url", metavar="URL", help="its endpoint (default: TEACHER_BASE_URL)")
    add("--cosine", type=share, default=0.92, help="least cosine of a repetition (default: 0.92)")
    add("--force", action="store_true", help="replace existing outputs")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    return run_command(
        PROGRAM,
        lambda: filter_rows(arguments),
        "nothing was written, and vectors got so far are kept",
    )


if __name__ == "__main__":
    sys.exit(main())
