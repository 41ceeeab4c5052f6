"""Look at filtered questions again, with a stricter prompt and another LLM if given.

    python utils/filter_again.py outputs/filtered.jsonl --output outputs/confirmed.jsonl --model openai/another
    python utils/filter_again.py outputs/filtered.jsonl outputs/filtered.dropped.jsonl --output outputs/confirmed.jsonl

Out: rows of utils/filter_with_llm.py that both passes keep, with the second `task_type` and
`second_verdict`. OUT.dropped.jsonl has the others, OUT.disagreements.jsonl the differences,
OUT.agreement.md counts and Cohen's kappa, which needs the dropped rows too (second example). They
stay dropped.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from common.files import FileError
from common.jsonl import JsonlRows, write_jsonl, write_text
from common.llm import LLMClient
from sql_agent.curation.llm_filter import Row, Screening, beside, filter_rows, run_program
from sql_agent.curation.prompts import STRICT, Verdict

PROGRAM = "filter_again"
FIELDS = ("is_medical", "answerable", "task_type", "kept")
HEADING = "| field | rows | agree | share | kappa |\n|---|---|---|---|---|\n"
NO_KAPPA = "n/a"
CONSTANT = (
    "\nkappa n/a: one of the two gave every row the same value (give the dropped rows as a further "
    "input).\n"
)

Pairs = Counter[tuple[Any, Any]]  # how often the first and the second pass gave which values


def agreement(pairs_of: Mapping[str, Pairs]) -> str:
    """Return rows, agreement and kappa of each field as Markdown."""
    text = HEADING
    for name, pairs in pairs_of.items():
        rows = pairs.total()
        agreed = agreed_of(pairs)
        value = kappa(pairs)
        share = f"{agreed / rows:.1%}" if rows else NO_KAPPA
        shown = NO_KAPPA if value is None else f"{value:.3f}"
        text += f"| {name} | {rows:,} | {agreed:,} | {share} | {shown} |\n"
    return text + (CONSTANT if NO_KAPPA in text else "")


def agreed_of(pairs: Pairs) -> int:
    return sum(count for (first, second), count in pairs.items() if first == second)


def kappa(pairs: Pairs) -> float | None:
    """Return Cohen's kappa (1960), (p_o - p_e) / (1 - p_e), or None if a judge gave one value only."""
    firsts: Counter[Any] = Counter()
    seconds: Counter[Any] = Counter()
    for (first, second), count in pairs.items():
        firsts[first] += count
        seconds[second] += count
    if len(firsts) < 2 or len(seconds) < 2:
        return None
    rows = pairs.total()
    expected = sum(firsts[value] * seconds[value] for value in firsts) / rows**2
    return (agreed_of(pairs) / rows - expected) / (1 - expected)


def first_verdict(row: Row) -> Verdict:
    """Return the first pass's verdict. Raises FileError if the row holds none."""
    try:
        return Verdict.model_validate(row.get("verdict"))
    except ValidationError:
        expected = "expected the `verdict` of filter_with_llm"
        raise FileError(f"row {row['id']!r}: {expected}, got {row.get('verdict')!r}") from None


def screen_again(options: argparse.Namespace, rows: JsonlRows, client: LLMClient) -> int:
    for row in rows:
        first_verdict(row)
    disagreements = beside(options.output, "disagreements")
    table = options.output.with_suffix(".agreement.md")
    pairs_of: dict[str, Pairs] = {name: Counter() for name in FIELDS}
    differing: list[Row] = []

    def judge(row: Row, result: Row) -> tuple[Row, bool]:
        first = first_verdict(row)
        second = Verdict(**result)
        one = first.model_dump() | {"kept": first.keeps}
        other = second.model_dump() | {"kept": second.keeps}
        for name, pairs in pairs_of.items():
            pairs[one[name], other[name]] += 1
        if differ := [name for name in FIELDS if one[name] != other[name]]:
            verdicts = {"first": first.model_dump(), "second": second.model_dump()}
            asked = {"id": row["id"], "question": row["question"]}
            differing.append({**asked, "differ": differ, **verdicts})
        second_verdict = result | {"model": client.model}
        columns = {"task_type": second.task_type, "second_verdict": second_verdict}
        return row | columns, first.keeps and second.keeps

    def compare() -> None:
        write_jsonl(disagreements, differing, force=True)
        write_text(table, agreement(pairs_of), force=True)
        print(agreement(pairs_of), file=sys.stderr)

    work = Screening(client, STRICT)
    others = (disagreements, table)
    return filter_rows(PROGRAM, options, rows, work, judge, others, compare)


def main(argv: Sequence[str] | None = None) -> int:
    return run_program(PROGRAM, __doc__, screen_again, argv)


if __name__ == "__main__":
    sys.exit(main())
