"""Draft an answer with evidence for every question: the agent finds rows, an LLM quotes them, every
quote is verified.

    python utils/openevidence.py outputs/new.jsonl --output outputs/answered.jsonl --db sqlite:///data/medical.db

In: JSONL rows with `id` and `question`. For each, the project's SQL agent queries the database with
the teacher LLM (TEACHER_MODEL; its endpoint must speak OpenAI's chat completions), then one
structured call writes statements that cite {table, row_id, field, quote}. What can not be verified
is refused: a quote that is not in its cell, a statement without one, numbers or sentences of the
LLM's own. Out: rows that `python -m data.validate` accepts, with `answer`, `evidence`, `sql` (the
agent's queries that read the cited rows) and `structured_gt` where the answer says all they return;
refused rows stand in OUT.dropped.jsonl with `refused` {reason, detail}. An answer "nothing found"
is never drafted: a query that finds nothing proves nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from common.command import positive
from common.jsonl import JsonlRows
from common.llm import LLMClient
from common.settings import load_settings
from sql_agent.curation import llm_pass

PROGRAM = "openevidence"
Row = dict[str, Any]


def draft_answers(options: argparse.Namespace, rows: JsonlRows, client: LLMClient) -> int:
    from sql_agent.curation.drafting import Drafter

    drafter = Drafter(client, load_settings(), options.db, options.max_turns)
    refused: Counter[str] = Counter()

    def judge(row: Row, result: Row) -> tuple[Row, bool]:
        if "refused" in result:
            refused[result["refused"]["reason"]] += 1
        return row | result, "refused" not in result

    def count_refused() -> None:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in refused.most_common())
        print(f"{PROGRAM}: refused: {reasons or 'none'}")

    def describe() -> str:
        return (
            f"{drafter.episodes:,} episodes (their tokens are not counted); drafts: {client.usage}"
        )

    return llm_pass.run_pass(
        PROGRAM,
        options,
        rows,
        client,
        drafter,
        judge=judge,
        finish=count_refused,
        describe=describe,
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--db", metavar="URL", help="the database (default: DATABASE_URL, else the embedded one)")
    add(
        "--max-turns",
        type=positive(int),
        default=6,
        metavar="N",
        help="calls of the agent a question (6)",
    )


def main(argv: Sequence[str] | None = None) -> int:
    return llm_pass.run_program(PROGRAM, __doc__, draft_answers, argv, add_options)


if __name__ == "__main__":
    sys.exit(main())
