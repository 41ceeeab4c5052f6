"""A second, stricter look at filtered questions, with another prompt and another LLM if given; and how far both agree.

    python utils/filter_again.py outputs/filtered.jsonl --output outputs/confirmed.jsonl --model openai/another
    python utils/filter_again.py outputs/filtered.jsonl outputs/filtered.dropped.jsonl --output outputs/confirmed.jsonl

In: rows of utils/filter_with_llm.py. Out: the rows that both passes keep, with `task_type` of the second one and its
`second_verdict`; the others stand in OUT.dropped.jsonl, rows with any difference in OUT.disagreements.jsonl, and
OUT.agreement.md has the counts and Cohen's kappa of every field. With the kept rows alone the first pass said "yes" to
all of them, and kappa has nothing to measure there: give the dropped rows too, as above. None of them is kept.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pydantic import ValidationError

from common.files import FileError
from common.jsonl import JsonlRows, write_jsonl, write_text
from common.llm import LLMClient
from utils.curation import llm_pass
from utils.curation.screening import FIELDS, STRICT, Screening, Verdict, is_kept

PROGRAM = "filter_again"
Row = dict[str, Any]
NO_KAPPA = "n/a"
CONSTANT = "kappa n/a: one of the two gave every row the same value (give the dropped rows as a further input).\n"

Pairs = Counter[tuple[Any, Any]]


class Agreement:
    """How far two judges agree: how often each pair of values was given, by field."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        self.pairs: dict[str, Pairs] = {name: Counter() for name in fields}

    def add(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
        """Count a row judged by both; returns the fields in which they differ."""
        for name, pairs in self.pairs.items():
            pairs[first[name], second[name]] += 1
        return [name for name in self.pairs if first[name] != second[name]]

    def markdown(self) -> str:
        """Rows, agreement and kappa of each field, and the disagreements, the most frequent first."""
        parts = [_table([("field", "rows", "agree", "share", "kappa"), *(_line(*item) for item in self.pairs.items())])]
        if any(kappa(pairs) is None for pairs in self.pairs.values()):
            parts.append(CONSTANT)
        differing = [
            (name, str(first), str(second), count)
            for name, pairs in self.pairs.items()
            for (first, second), count in pairs.items()
            if first != second
        ]
        if differing:
            differing.sort(key=lambda line: (-line[3], line[:3]))
            parts.append(_table([("field", "first", "second", "rows"), *differing]))
        return "\n".join(parts)


def kappa(pairs: Pairs) -> float | None:
    """Cohen's kappa (1960): (p_o - p_e) / (1 - p_e); None where a judge gave one value only."""
    first: Counter[Any] = Counter()
    second: Counter[Any] = Counter()
    for (one, other), count in pairs.items():
        first[one] += count
        second[other] += count
    if len(first) < 2 or len(second) < 2:
        return None
    rows = pairs.total()
    expected = sum(first[value] * second[value] for value in first) / rows**2
    return (_agreed(pairs) / rows - expected) / (1 - expected)


def _agreed(pairs: Pairs) -> int:
    return sum(count for (first, second), count in pairs.items() if first == second)


def _line(name: str, pairs: Pairs) -> tuple[str, ...]:
    rows, agreed, value = pairs.total(), _agreed(pairs), kappa(pairs)
    share = f"{agreed / rows:.1%}" if rows else NO_KAPPA
    return (name, f"{rows:,}", f"{agreed:,}", share, NO_KAPPA if value is None else f"{value:.3f}")


def _table(rows: list[tuple[Any, ...]]) -> str:
    """Markdown; the first row has the headings."""
    rows.insert(1, ("---",) * len(rows[0]))
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)


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

    work, files = Screening(client, STRICT), (differing, report)
    return llm_pass.run_pass(PROGRAM, options, rows, client, work, judge=judge, others=files, finish=compare)


def main(argv: Sequence[str] | None = None) -> int:
    return llm_pass.run_program(PROGRAM, __doc__, filter_rows, argv)


if __name__ == "__main__":
    sys.exit(main())
