"""Look at filtered questions again, with a stricter prompt and another LLM if given.

    .venv/bin/python utils/filter_again.py outputs/filtered.jsonl --output outputs/confirmed.jsonl --model openai/another
    .venv/bin/python utils/filter_again.py outputs/filtered.jsonl outputs/filtered.dropped.jsonl --output outputs/both.jsonl

Out: rows of utils/filter_with_llm.py that both passes keep, with the second `task_type` and
`second_verdict`. OUT.dropped.jsonl has the others. How often both agree is printed; for that, give
the dropped rows too (second example). They stay dropped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pydantic import ValidationError

from common.files import FileError
from common.jsonl import JsonlRows
from common.llm import LLMClient
from sql_agent.curation.llm_filter import Row, Screening, run_filter
from sql_agent.curation.prompts import STRICT, Verdict


class SecondPass(Screening):
    program = "filter_again"
    instructions = STRICT

    def __init__(self, options: argparse.Namespace, rows: JsonlRows, client: LLMClient) -> None:
        super().__init__(options, rows, client)
        for row in rows:
            first_verdict(row)
        self.judged = 0
        self.agreed = 0

    def judge(self, row: Row, result: Row) -> tuple[Row, bool]:
        first = first_verdict(row)
        second = Verdict(**result)
        self.judged += 1
        self.agreed += first.keeps == second.keeps
        second_verdict = result | {"model": self.client.model}
        columns = {"task_type": second.task_type, "second_verdict": second_verdict}
        return row | columns, first.keeps and second.keeps

    def run(self) -> int:
        code = super().run()
        print(f"{self.program}: both passes agree on {self.agreed:,} of {self.judged:,} rows")
        return code


def first_verdict(row: Row) -> Verdict:
    """Return the first pass's verdict. Raises FileError if the row holds none."""
    try:
        return Verdict.model_validate(row.get("verdict"))
    except ValidationError:
        expected = "expected the `verdict` of filter_with_llm"
        raise FileError(f"row {row['id']!r}: {expected}, got {row.get('verdict')!r}") from None


def main(argv: Sequence[str] | None = None) -> int:
    return run_filter(SecondPass, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
