"""Keep the questions that are new: neither in existing sets nor earlier in the file itself.

    .venv/bin/python utils/filter_new_question.py candidates.jsonl --against data/train.parquet data/test.parquet \
        --output outputs/new.jsonl

Compared are the text without width, case, spaces and punctuation, and its pairs of characters
(--near). --embedding-model adds the cosine of embeddings (--cosine), with TEACHER_API_KEY
as its key. In: JSONL or Parquet with a column `question`. Out: the new rows unchanged.
OUT.dropped.jsonl has the others: {id, question, method, score, known: {file, id, question}}. Time is
linear, except for embeddings, which are compared in pairs. Exit codes: 0 done, 1 the endpoint failed
(vectors got so far are kept), 2 wrong usage, 130 interrupted.
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
from sql_agent.curation.embeddings import Embeddings
from sql_agent.curation.llm_filter import beside
from sql_agent.curation.near_duplicates import NEAR, NearDuplicates
from sql_agent.intake.question_files import DataError, read_records

PROGRAM = "filter_new_question"
JSON_KINDS = str | int | float | list | dict | None
Row = dict[str, Any]


class Source(NamedTuple):
    file: str
    id: str
    question: str


def match(method: str, score: float, known: Source) -> Row:
    """Describe a repetition: method, similarity (1: the same) and the known question."""
    return {"method": method, "score": round(score, 4), "known": known._asdict()}


class KnownQuestions:
    """A growing set of questions that finds repetitions."""

    def __init__(self, near: float) -> None:
        self.by_words: dict[str, Source] = {}
        self._near = NearDuplicates(near)

    def add(self, source: Source) -> None:
        """Remember a question. The first of equal ones stays."""
        words = words_only(source.question)
        if self.by_words.setdefault(words, source) is source:
            self._near.add(words, source.question)

    def match_or_add(self, source: Source) -> Row | None:
        """Return the repeated question by the strictest method, or remember the new one."""
        if same := self.by_words.get(words_only(source.question)):
            return match("same", 1.0, same)
        if near := self._near.nearest(source.question):
            return match("near", near[1], self.by_words[near[0]])
        self.add(source)
        return None


def read_questions(path: Path) -> Iterator[tuple[Source, Row]]:
    """Yield every row with its id (`id`, `qid` or its number) and question.

    Raises DataError, FileError: a row cannot be read, or has no question.
    """
    for place, row in watched(read_records(path), path.name):
        if isinstance(row, DataError):
            raise row
        where = f"{path}, row {place}, column"
        question = row.get("question")
        if not isinstance(question, str) or not question.strip():
            raise FileError(f"{where} question: {question!r}, expected text")
        for name, value in row.items():
            if not isinstance(value, JSON_KINDS):
                raise FileError(f"{where} {name}: a value that JSON cannot hold")
        yield Source(str(path), str(row.get("id") or row.get("qid") or place), question), row


def same_meaning(options: argparse.Namespace, sources: list[Source], old: int) -> dict[Source, Row]:
    """Return repetitions by nearest vector among the sources from position `old` on."""
    settings = load_settings()
    url = options.embedding_base_url or settings.teacher_base_url
    key = reveal(settings.teacher_api_key)
    embeddings = Embeddings(options.embedding_model, url, key, settings.llm_cache)
    vectors = asyncio.run(embeddings.of([source.question for source in sources]))
    print(f"{PROGRAM}: {embeddings.calls} embedding calls", file=sys.stderr)
    matches = {}
    kept = list(range(old))
    for place in range(old, len(sources)):
        cosines = vectors[kept] @ vectors[place]
        best = int(cosines.argmax()) if kept else 0
        if kept and cosines[best] >= options.cosine:
            found = match("embedding", float(cosines[best]), sources[kept[best]])
            matches[sources[place]] = found
        else:
            kept.append(place)
    return matches


def filter_rows(options: argparse.Namespace) -> None:
    dropped_file = beside(options.output, "dropped")
    refuse_inputs((options.output, dropped_file), (options.input, *options.against))
    for file in (options.output, dropped_file):
        refuse_existing(file, options.force)
    known = KnownQuestions(options.near)
    for path in options.against:
        for source, _ in read_questions(path):
            known.add(source)
    old = len(known.by_words)
    asked = []
    for source, row in read_questions(options.input):
        asked.append((source, row, known.match_or_add(source)))
    sources = list(known.by_words.values())
    same: dict[Source, Row] = {}
    if options.embedding_model and sources[old:]:
        same = same_meaning(options, sources, old)
    new = []
    dropped = []
    for source, row, found in asked:
        found = found or same.get(source)
        if found is None:
            new.append(row)
        else:
            dropped.append({"id": source.id, "question": source.question, **found})
    write_jsonl(options.output, new, options.force)
    write_jsonl(dropped_file, dropped, options.force)
    methods = Counter(row["method"] for row in dropped)
    counts = ", ".join(f"{count:,} {method}" for method, count in methods.items())
    known_ones = f"known: {counts or 'none'} ({dropped_file})"
    print(f"{PROGRAM}: {len(new):,} new in {options.output}; {known_ones}")


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    add = parser.add_argument
    share = number(float, lambda value: 0 < value <= 1, "above 0 and at most 1")
    add("input", type=Path, help="JSONL or Parquet with the column question")
    sets = "existing sets, JSONL or Parquet"
    add("--against", type=Path, nargs="*", default=[], metavar="FILE", help=sets)
    new = "the new rows; the others: OUT.dropped.jsonl"
    add("--output", type=Path, required=True, metavar="OUT.jsonl", help=new)
    near = f"least Jaccard similarity of a repetition (default: {NEAR})"
    add("--near", type=share, default=NEAR, help=near)
    name = "litellm's name of an embedding model, such as openai/NAME"
    add("--embedding-model", metavar="NAME", help=name)
    add("--embedding-base-url", metavar="URL", help="its endpoint (default: TEACHER_BASE_URL)")
    add("--cosine", type=share, default=0.92, help="least cosine of a repetition (default: 0.92)")
    add("--force", action="store_true", help="replace existing outputs")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_arguments(argv)
    afterwards = "nothing was written, and vectors got so far are kept"
    return run_command(PROGRAM, lambda: filter_rows(options), afterwards)


if __name__ == "__main__":
    sys.exit(main())
