"""A second, stricter look at filtered questions, with another prompt and another LLM if given; and
how far both agree.

    python utils/filter_again.py outputs/filtered.jsonl --output outputs/confirmed.jsonl --model openai/another
    python utils/filter_again.py outputs/filtered.jsonl outputs/filtered.dropped.jsonl --output outputs/confirmed.jsonl

In: rows of utils/filter_with_llm.py. Out: the rows that both passes keep, with `task_type` of the
second one and its `second_verdict`; the others stand in OUT.dropped.jsonl, rows with any difference
in OUT.disagreements.jsonl, and OUT.agreement.md has the counts and Cohen's kappa of every field.
With the kept rows alone the first pass said "yes" to all of them, and kappa has nothing to measure
there: give the dropped rows too, as above. None of them is kept.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from common.files import FileError
from common.jsonl import JsonlRows, write_jsonl, write_text
from common.llm import LLMClient
from sql_agent.curation import llm_pass
from sql_agent.curation.screening import FIELDS, STRICT, Screening, Verdict, is_kept

PROGRAM = "filter_again"
Row = dict[str, Any]
NO_KAPPA = "n/a"
CONSTANT = (
    "kappa n/a: one of the two gave every row the same "
    "value (give the dropped rows as a further input).\n"
)

Pairs = Counter[tuple[Any, Any]]  # how often the first and the second pass gave which values


def agreement(pairs_of: dict[str, Pairs]) -> str:
    """Return rows, agreement and kappa of each field, and the disagreements, the most frequent
    first, as Markdown.
    """
    measured = []
    differing = []
    for name, pairs in pairs_of.items():
        rows = pairs.total()
        agreed = _agreed(pairs)
        value = kappa(pairs)
        share = f"{agreed / rows:.1%}" if rows else NO_KAPPA
        measured.append(
            (name, f"{rows:,}", f"{agreed:,}", share, NO_KAPPA if value is None else f"{value:.3f}")
        )
        differing += [
            (name, str(one), str(other), count)
            for (one, other), count in pairs.items()
            if one != other
        ]
    text = _table(("field", "rows", "agree", "share", "kappa"), measured)
    if any(line[-1] == NO_KAPPA for line in measured):
        text += f"\n{CONSTANT}"
    if differing:
        differing.sort(key=lambda line: (-line[3], line[:3]))
        text += "\n" + _table(("field", "first", "second", "rows"), differing)
    return text


def kappa(pairs: Pairs) -> float | None:
    """Return Cohen's kappa (1960): (p_o - p_e) / (1 - p_e); None where a judge gave one
    value only.
    """
    first, second = (
        (Counter(values) for values in zip(*pairs.elements(), strict=True)) if pairs else ({}, {})
    )
    if len(first) < 2 or len(second) < 2:
        return None
    rows = pairs.total()
    expected = sum(first[value] * second[value] for value in first) / rows**2
    return (_agreed(pairs) / rows - expected) / (1 - expected)


def _agreed(pairs: Pairs) -> int:
    return sum(count for (first, second), count in pairs.items() if first == second)


def _table(heading: tuple[str, ...], lines: list[tuple[Any, ...]]) -> str:
    return "".join(
        f"| {' | '.join(map(str, line))} |\n" for line in (heading, ("---",) * len(heading), *lines)
    )


def first_verdict(row: Row) -> Verdict:
    """Return the first pass's verdict. Raises FileError if the row holds none."""
    try:
        return Verdict.model_validate(row.get("verdict"))
    except ValidationError:
        expected = "expected the `verdict` of filter_with_llm"
        raise FileError(f"row {row['id']!r}: {expected}, got {row.get('verdict')!r}") from None


def filter_rows(options: argparse.Namespace, rows: JsonlRows, client: LLMClient) -> int:
    for row in rows:
        first_verdict(row)
    files = (
        llm_pass.beside(options.output, "disagreements"),
        options.output.with_suffix(".agreement.md"),
    )
    pairs_of: dict[str, Pairs] = {name: Counter() for name in (*FIELDS, "kept")}
    differing: list[Row] = []

    def judge(row: Row, result: Row) -> tuple[Row, bool]:
        first = first_verdict(row)
        second = Verdict(**result)
        one, other = (
            verdict.model_dump() | {"kept": is_kept(verdict)} for verdict in (first, second)
        )
        for name, pairs in pairs_of.items():
            pairs[one[name], other[name]] += 1
        if differ := [name for name in pairs_of if one[name] != other[name]]:
            verdicts = {"first": first.model_dump(), "second": second.model_dump()}
            differing.append(
                {"id": row["id"], "question": row["question"], "differ": differ, **verdicts}
            )
        columns = {
            "task_type": second.task_type,
            "second_verdict": result | {"model": client.model},
        }
        return row | columns, one["kept"] and other["kept"]

    def compare() -> None:
        write_jsonl(files[0], differing, force=True)
        write_text(files[1], agreement(pairs_of), force=True)
        print(agreement(pairs_of), file=sys.stderr)

    work = Screening(client, STRICT)
    return llm_pass.run_pass(
        PROGRAM, options, rows, client, work, judge=judge, others=files, finish=compare
    )


def main(argv: Sequence[str] | None = None) -> int:
    return llm_pass.run_program(PROGRAM, __doc__, filter_rows, argv)


if __name__ == "__main__":
    sys.exit(main())
