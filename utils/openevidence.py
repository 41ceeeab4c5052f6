"""Draft an answer with evidence for every question: the agent finds rows, an LLM quotes them, every quote is verified.

    python utils/openevidence.py outputs/new.jsonl --output outputs/answered.jsonl --db sqlite:///data/medical.db

In: JSONL rows with `id` and `question`. For each, the project's SQL agent queries the database with the teacher LLM
(TEACHER_MODEL; its endpoint must speak OpenAI's chat completions), then one structured call writes statements that cite
{table, row_id, field, quote}. What can not be verified is refused: a quote that is not in its cell, a statement without
one, numbers or sentences of the LLM's own. Out: rows that `python -m data.validate` accepts, with `answer`, `evidence`,
`sql` (the agent's queries that read the cited rows) and `structured_gt` where the answer says all they return; refused
rows stand in OUT.dropped.jsonl with `refused` {reason, detail}. An answer "nothing found" is never drafted: a query
that finds nothing proves nothing. May be killed at any moment: the same command goes on.
Exit codes: 0 done, 1 rows failed or the endpoint does not work, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common.journal import Failed, Journal, open_journal, run_all
from common.jsonl import JsonlRows, file_digest
from common.settings import load_settings
from utils.curation import screening as judging

if TYPE_CHECKING:
    from utils.curation.drafting import Drafter

PROGRAM = "openevidence"
VERSION = 1  # of what becomes of a question; raised, an unfinished journal is not continued


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, help="JSONL of questions")
    judging.add_options(parser)
    parser.add_argument("--db", metavar="URL", help="the database (default: DATABASE_URL, else the embedded one)")
    parser.add_argument(
        "--max-turns", type=judging.positive(int), default=6, metavar="N", help="calls of the agent a question (6)"
    )
    return parser.parse_args(argv)


def open_work(options: argparse.Namespace, drafter: Drafter) -> Journal:
    """The journal: results depend on models, prompts, database and input."""
    from utils.curation.cited_answer import INSTRUCTIONS

    fingerprint = {
        "program": PROGRAM,
        "version": VERSION,
        "model": drafter.client.model,
        "endpoint": drafter.client.endpoint,
        "prompt": hashlib.sha256(INSTRUCTIONS.encode()).hexdigest()[:16],
        "database": drafter.database_label,
        "max_turns": options.max_turns,
        "input": file_digest(options.input)[:16],
    }
    files = (judging.beside(options.output, "dropped"), judging.beside(options.output, "failed"))
    return open_journal(options.output, fingerprint, force=options.force, others=files)


def run(options: argparse.Namespace) -> int:
    """The program's body; returns the exit code."""
    from common.llm_error import LLMError
    from utils.curation.drafting import Drafter

    rows = JsonlRows(options.input, ("id", "question"), options.limit)
    client = judging.open_client(options)
    drafter = Drafter(client, load_settings(), options.db, options.max_turns)
    with open_work(options, drafter) as journal:
        everything = run_all(
            rows,
            key=lambda row: hashlib.sha256(f"{row['id']}\0{row['question']}".encode()).hexdigest()[:32],
            work=drafter.draft,
            journal=journal,
            concurrency=options.concurrency,
            title=PROGRAM,
            describe=lambda: f"{drafter.episodes:,} episodes (their tokens are not counted); drafts: {client.usage}",
            failures=LLMError,
        )
        outcome = asyncio.run(everything)
        refused: Counter[str] = Counter()

        def answered() -> Iterator[tuple[dict[str, Any], bool]]:
            refused.clear()
            for row, result in zip(rows, outcome, strict=True):
                if not isinstance(result, Failed):
                    refused[(result.get("refused") or {}).get("reason", "")] += 1
                    yield row | result, "refused" not in result

        counts = judging.write_outputs(options.output, answered, rows, outcome)
        code = judging.conclude(PROGRAM, options.output, counts, outcome, client)
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in refused.most_common() if reason)
    print(f"{PROGRAM}: refused: {reasons or 'none'}")
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    from tools.sql.database import DatabaseError

    options = parse_arguments(argv)

    def with_database() -> int:
        try:
            return run(options)
        except DatabaseError as error:
            print(f"{PROGRAM}: {error}", file=sys.stderr)
            return 1

    return judging.run_safely(PROGRAM, with_database)


if __name__ == "__main__":
    sys.exit(main())
