"""An LLM looks at every candidate question: medical? answerable from the tables? of which type?

    python utils/filter_with_llm.py outputs/candidates.jsonl --output outputs/filtered.jsonl

In: JSONL rows with `id` and `question` (utils/chat_session_filter.py makes them); other columns pass through. Out: the
rows that are kept, with `task_type` and `verdict` {reason, is_medical, answerable, task_type, model}; the others stand
in OUT.dropped.jsonl with the same columns. A row is kept if it is medical and answerable. The LLM is TEACHER_MODEL.

May be killed at any moment: the same command goes on, and a reply that arrived is never paid for twice. Rows whose
call finally fails are in OUT.failed.jsonl, counted, and tried again by the same command.
Exit codes: 0 done, 1 rows failed or the endpoint does not work, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common.journal import Failed
from common.jsonl import JsonlRows
from utils.curation import screening as judging
from utils.curation.verdict import FIRST, Verdict, is_kept

PROGRAM = "filter_with_llm"


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, help="JSONL of candidate questions")
    judging.add_options(parser)
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> int:
    """The program's body; returns the exit code."""
    rows = JsonlRows(options.input, ("id", "question"), options.limit)
    client = judging.open_client(options)
    with judging.open_work(PROGRAM, options, client, FIRST, [options.input]) as journal:
        outcome = judging.ask_all(PROGRAM, rows, client, FIRST, journal, options.concurrency)

        def judged() -> Iterator[tuple[dict[str, Any], bool]]:
            for row, verdict in zip(rows, outcome, strict=True):
                if not isinstance(verdict, Failed):
                    told = {"task_type": verdict["task_type"], "verdict": verdict | {"model": client.model}}
                    yield row | told, is_kept(Verdict(**verdict))

        counts = judging.write_outputs(options.output, judged, rows, outcome)
        return judging.conclude(PROGRAM, options.output, counts, outcome, client)


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    options = parse_arguments(argv)
    return judging.run_safely(PROGRAM, lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
