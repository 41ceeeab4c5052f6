"""An LLM looks at every candidate question: medical? answerable from the tables? of which type?

    python utils/filter_with_llm.py outputs/candidates.jsonl --output outputs/filtered.jsonl

In: JSONL rows with `id` and `question` (utils/chat_session_filter.py makes them); other columns
pass through. Out: the rows that are kept, with `task_type` and `verdict` {reason, is_medical,
answerable, task_type, model}; the others stand in OUT.dropped.jsonl with the same columns. A row is
kept if it is medical and answerable. The LLM is TEACHER_MODEL.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from common.jsonl import JsonlRows
from common.llm import LLMClient
from sql_agent.curation import llm_pass
from sql_agent.curation.screening import FIRST, Screening, Verdict, is_kept

PROGRAM = "filter_with_llm"
Row = dict[str, Any]


def filter_rows(options: argparse.Namespace, rows: JsonlRows, client: LLMClient) -> int:

    def judge(row: Row, verdict: Row) -> tuple[Row, bool]:
        columns = {"task_type": verdict["task_type"], "verdict": verdict | {"model": client.model}}
        return row | columns, is_kept(Verdict(**verdict))

    return llm_pass.run_pass(PROGRAM, options, rows, client, Screening(client, FIRST), judge=judge)


def main(argv: Sequence[str] | None = None) -> int:
    return llm_pass.run_program(PROGRAM, __doc__, filter_rows, argv)


if __name__ == "__main__":
    sys.exit(main())
