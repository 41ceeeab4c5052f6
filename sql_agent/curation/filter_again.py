"""Look at filtered questions again, with a stricter prompt and another LLM if given.

    .venv/bin/python utils/filter_again.py outputs/filtered.jsonl --output outputs/confirmed.jsonl --model openai/another
    .venv/bin/python utils/filter_again.py outputs/filtered.jsonl outputs/filtered.dropped.jsonl --output outputs/both.jsonl

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
from sql_agent.curation.llm_filter import Row, Screening, beside, run_filter
from sql_agent.curation.prompts import STRICT, Verdict

FIELDS = ("is_medical", "answerable", "task_type", "kept")
NO_KAPPA = "n/a"
CONSTANT = (
    "\nkappa n/a: one of the two gave every row the same value (give the dropped rows as a further "
    "input).\n"
)

Pairs = Counter[tuple[Any, Any]]  # how often the first and the second pass gave which values


class SecondPass(Screening):
    program = "filter_again"
    instructions = STRICT

    def __init__(self, options: argparse.Namespace, rows: JsonlRows, client: LLMClient) -> None:
        super().__init__(options, rows, client)
        for row in rows:
            first_verdict(row)
        self.disagreements = beside(options.output, "disagreements")
        self.table = options.output.with_suffix(".agreement.md")
        self.others = (self.disagreements, self.table)
        self.pairs_of: dict[str, Pairs] = {name: Counter() for name in FIELDS}
        self.differing: list[Row] = []

    def judge(self, row: Row, result: Row) -> tuple[Row, bool]:
        first = first_verdict(row)
        second = Verdict(**result)
        one = first.model_dump() | {"kept": first.keeps}
        other = second.model_dump() | {"kept": second.keeps}
        differ = []
        for name, pairs in self.pairs_of.items():
            pairs[one[name], other[name]] += 1
            if one[name] != other[name]:
                differ.append(name)
        if differ:
            verdicts = {"first": first.model_dump(), "second": second.model_dump()}
            asked = {"id": row["id"], "question": row["question"]}
            self.differing.append({**asked, "differ": differ, **verdicts})
        second_verdict = result | {"model": self.client.model}
        columns = {"task_type": second.task_type, "second_verdict": second_verdict}
        return row | columns, first.keeps and second.keeps

    def finish(self) -> None:
        write_jsonl(self.disagreements, self.differing, force=True)
        write_text(self.table, agreement(self.pairs_of), force=True)
        print(agreement(self.pairs_of), file=sys.stderr)


def first_verdict(row: Row) -> Verdict:
    """Return the first pass's verdict. Raises FileError if the row holds none."""
    try:
        return Verdict.model_validate(row.get("verdict"))
    except ValidationError:
        expected = "expected the `verdict` of filter_with_llm"
        raise FileError(f"row {row['id']!r}: {expected}, got {row.get('verdict')!r}") from None


def agreement(pairs_of: Mapping[str, Pairs]) -> str:
    """Return rows, agreement and kappa of each field as Markdown."""
    text = "| field | rows | agree | share | kappa |\n|---|---|---|---|---|\n"
    for name, pairs in pairs_of.items():
        rows = pairs.total()
        agreed = sum(count for (first, second), count in pairs.items() if first == second)
        value = kappa(pairs, agreed)
        share = f"{agreed / rows:.1%}" if rows else NO_KAPPA
        shown = NO_KAPPA if value is None else f"{value:.3f}"
        text += f"| {name} | {rows:,} | {agreed:,} | {share} | {shown} |\n"
    return text + (CONSTANT if NO_KAPPA in text else "")


def kappa(pairs: Pairs, agreed: int) -> float | None:
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
    return (agreed / rows - expected) / (1 - expected)


def main(argv: Sequence[str] | None = None) -> int:
    return run_filter(SecondPass, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
