"""Ask an LLM about every candidate question: medical? answerable from the tables? of which type?

    .venv/bin/python utils/filter_with_llm.py outputs/candidates.jsonl --output outputs/filtered.jsonl
    .venv/bin/python utils/filter_with_llm.py outputs/filtered.jsonl --output outputs/confirmed.jsonl --strict

In: JSONL rows with `id` and `question` (from utils/chat_session_filter.py). Out: rows that are
medical and answerable, with `task_type` and `verdict` {reason, is_medical, answerable, task_type,
model}. OUT.dropped.jsonl has the others. Other columns pass through. The LLM is TEACHER_MODEL.
--strict is a second look (also utils/filter_again.py): in doubt it drops.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from common.jsonl import JsonlRows
from common.llm import LLMClient
from sql_agent.curation.llm_filter import LLMFilter, Row, run_filter
from sql_agent.curation.prompts import FIRST, STRICT, Verdict, digest, screening_messages


class Screening(LLMFilter):
    program = "filter_with_llm"
    switches: Mapping[str, str] = {"--strict": "look again, with a stricter prompt"}

    def __init__(self, options: argparse.Namespace, rows: JsonlRows, client: LLMClient) -> None:
        super().__init__(options, rows, client)
        self.instructions = STRICT if options.strict else FIRST
        schema = str(sorted(Verdict.model_json_schema().items()))
        self.depends = {"prompt": digest(self.instructions + schema)[:16]}

    async def ask(self, row: Row) -> Row:
        messages = screening_messages(row["question"], self.instructions)
        verdict = await self.client.ask(messages, Verdict)
        return verdict.model_dump()

    def judge(self, row: Row, result: Row) -> tuple[Row, bool]:
        verdict = result | {"model": self.client.model}
        return row | {"task_type": result["task_type"], "verdict": verdict}, Verdict(**result).keeps


def main(argv: Sequence[str] | None = None) -> int:
    return run_filter(Screening, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
