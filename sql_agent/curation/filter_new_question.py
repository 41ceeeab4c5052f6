"""Keep the questions that are new: neither in existing sets nor earlier in the file itself.

    .venv/bin/python utils/filter_new_question.py candidates.jsonl --against data/train.parquet data/test.parquet \
        --output outputs/new.jsonl

Compared are the text without width, case, spaces and punctuation, and its pairs of characters
(--near). In: JSONL or Parquet with a column `question`. Out: the new rows unchanged.
OUT.dropped.jsonl has the others: {id, question, method, score, known: {file, id, question}}.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from common.command import new_parser, number, run_command
from common.files import FileError, refuse_existing, refuse_inputs
from common.jsonl import write_jsonl
from common.terminal import watched
from sql_agent.curation.llm_filter import beside
from sql_agent.curation.near_duplicates import NEAR, NearDuplicates
from sql_agent.intake.question_files import DataError, read_records

PROGRAM = "filter_new_question"
Row = dict[str, Any]


def read_questions(path: Path) -> Iterator[tuple[Row, Row]]:
    """Yield {file, id, question} of every row, and the row. Its id is `id`, `qid` or its number.

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
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except (TypeError, ValueError):  # a date, a half of a surrogate pair
                raise FileError(f"{where} {name}: a value that JSON cannot hold") from None
        name = str(row.get("id") or row.get("qid") or place)
        yield {"file": str(path), "id": name, "question": question}, row


def filter_rows(options: argparse.Namespace) -> None:
    dropped_file = beside(options.output, "dropped")
    refuse_inputs((options.output, dropped_file), (options.input, *options.against))
    for file in (options.output, dropped_file):
        refuse_existing(file, options.force)
    near = NearDuplicates(options.near)
    for path in options.against:
        for known, _ in read_questions(path):
            near.add(known, known["question"])
    new = []
    dropped = []
    for source, row in read_questions(options.input):
        found = near.nearest(source["question"])
        if found is None:
            near.add(source, source["question"])
            new.append(row)
            continue
        known, score = found
        said = {"method": "same" if score == 1 else "near", "score": round(score, 4)}
        asked = {"id": source["id"], "question": source["question"]}
        dropped.append(asked | said | {"known": known})
    write_jsonl(options.output, new, options.force)
    write_jsonl(dropped_file, dropped, options.force)
    methods = Counter(row["method"] for row in dropped)
    counts = ", ".join(f"{count:,} {method}" for method, count in methods.items()) or "none"
    print(f"{PROGRAM}: {len(new):,} new in {options.output}; known: {counts} ({dropped_file})")


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    share = number(float, lambda value: 0 < value <= 1, "above 0 and at most 1")
    add("input", type=Path, help="JSONL or Parquet with the column question")
    what = "existing sets, JSONL or Parquet"
    add("--against", type=Path, nargs="*", default=[], metavar="FILE", help=what)
    what = "the new rows; the others: OUT.dropped.jsonl"
    add("--output", type=Path, required=True, metavar="OUT.jsonl", help=what)
    what = f"least Jaccard similarity of a repetition (default: {NEAR})"
    add("--near", type=share, default=NEAR, help=what)
    add("--force", action="store_true", help="replace existing outputs")
    options = parser.parse_args(argv)
    return run_command(PROGRAM, lambda: filter_rows(options), "nothing was written")


if __name__ == "__main__":
    sys.exit(main())
