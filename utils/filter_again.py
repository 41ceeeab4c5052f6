"""A second, stricter look at filtered questions, with another prompt and another LLM if given; and how far both agree.

    python utils/filter_again.py outputs/filtered.jsonl --output outputs/confirmed.jsonl --model openai/another
    python utils/filter_again.py outputs/filtered.jsonl outputs/filtered.dropped.jsonl --output outputs/confirmed.jsonl

In: rows of utils/filter_with_llm.py. Out: the rows that both passes keep, with `task_type` of the second one and its
`second_verdict`; the others stand in OUT.dropped.jsonl, rows with any difference in OUT.disagreements.jsonl, and
OUT.agreement.md has the counts and Cohen's kappa of every field. With the kept rows alone the first pass said "yes" to
all of them, and kappa has nothing to measure there: give the dropped rows too, as above. None of them is kept.

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

from pydantic import ValidationError

from common.files import FileError
from common.jsonl import JsonlRows, write_jsonl, write_text
from common.llm import LLMClient
from utils.curation import llm_pass
from utils.curation.kappa import Agreement
from utils.curation.screening import FIELDS, STRICT, Screening, Verdict, is_kept

PROGRAM = "filter_again"
Row = dict[str, Any]


def first_verdict(row: Row) -> Verdict:
    """What the first pass said. Raises FileError if the row holds no such thing."""
    try:
        return Verdict.model_validate(row.get("verdict"))
    except ValidationError:
        expected = "expected the `verdict` of filter_with_llm"
        raise FileError(f"row {row['id']!r}: {expected}, got {row.get('verdict')!r}") from None


def compared(verdict: Verdict) -> dict[str, Any]:
    """The values of a verdict that are compared."""
    return {name: getattr(verdict, name) for name in FIELDS} | {"kept": is_kept(verdict)}


def disagreements(results: Iterator[tuple[Row, Row]], agreement: Agreement) -> Iterator[Row]:
    """The rows in which the passes differ; counts every row in `agreement` on the way."""
    for row, result in results:
        first, second = first_verdict(row), Verdict(**result)
        differ = agreement.add(compared(first), compared(second))
        if differ:
            verdicts = {"first": first.model_dump(), "second": second.model_dump()}
            yield {"id": row["id"], "question": row["question"], "differ": differ, **verdicts}


def filter_rows(options: argparse.Namespace, rows: JsonlRows, client: LLMClient) -> int:
    """The program's body; returns the exit code."""
    for row in rows:
        first_verdict(row)
    differing, report = llm_pass.beside(options.output, "disagreements"), options.output.with_suffix(".agreement.md")

    def judge(row: Row, result: Row) -> tuple[Row, bool]:
        columns = {"task_type": result["task_type"], "second_verdict": result | {"model": client.model}}
        return row | columns, is_kept(first_verdict(row)) and is_kept(Verdict(**result))

    def compare(results: Iterator[tuple[Row, Row]]) -> None:
        agreement = Agreement((*FIELDS, "kept"))
        write_jsonl(differing, disagreements(results, agreement), force=True)
        write_text(report, agreement.markdown(), force=True)
        print(agreement.markdown(), file=sys.stderr)

    return llm_pass.run_pass(
        PROGRAM,
        options,
        rows,
        client,
        Screening(client, STRICT),
        judge=judge,
        others=(differing, report),
        finish=compare,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    return llm_pass.run_program(PROGRAM, __doc__, filter_rows, argv)


if __name__ == "__main__":
    sys.exit(main())
