"""Ask an LLM about every candidate question: medical? answerable from the tables? of which type?

    python utils/filter_with_llm.py outputs/candidates.jsonl --output outputs/filtered.jsonl

In: JSONL rows with `id` and `question` (from utils/chat_session_filter.py). Out: rows that are
medical and answerable, with `task_type` and `verdict` {reason, is_medical, answerable, task_type,
model}. OUT.dropped.jsonl has the others. Other columns pass through. The LLM is TEACHER_MODEL.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from common.jsonl import JsonlRows
from common.llm import LLMClient
from sql_agent.curation.llm_filter import Row, Screening, filter_rows, run_program
from sql_agent.curation.prompts import FIRST, Verdict

PROGRAM = "filter_with_llm"


def screen(options: argparse.Namespace, rows: JsonlRows, client: LLMClient) -> int:
    def judge(row: Row, verdict: Row) -> tuple[Row, bool]:
        columns = {"task_type": verdict["task_type"], "verdict": verdict | {"model": client.model}}
        return row | columns, Verdict(**verdict).keeps

    return filter_rows(PROGRAM, options, rows, Screening(client, FIRST), judge)


def main(argv: Sequence[str] | None = None) -> int:
    return run_program(PROGRAM, __doc__, screen, argv)


if __name__ == "__main__":
    sys.exit(main())
