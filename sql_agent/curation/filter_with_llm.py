"""Ask an LLM about every candidate question: medical? answerable from the tables? of which type?

    .venv/bin/python utils/filter_with_llm.py outputs/candidates.jsonl --output outputs/filtered.jsonl

In: JSONL rows with `id` and `question` (from utils/chat_session_filter.py). Out: rows that are
medical and answerable, with `task_type` and `verdict` {reason, is_medical, answerable, task_type,
model}. OUT.dropped.jsonl has the others. Other columns pass through. The LLM is TEACHER_MODEL.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sql_agent.curation.llm_filter import Row, Screening, run_filter
from sql_agent.curation.prompts import FIRST, Verdict


class FirstPass(Screening):
    program = "filter_with_llm"
    instructions = FIRST

    def judge(self, row: Row, result: Row) -> tuple[Row, bool]:
        verdict = result | {"model": self.client.model}
        return row | {"task_type": result["task_type"], "verdict": verdict}, Verdict(**result).keeps


def main(argv: Sequence[str] | None = None) -> int:
    return run_filter(FirstPass, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
