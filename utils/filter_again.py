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
from itertools import chain, islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pydantic import ValidationError

from common.journal import Failed, Outcome
from common.jsonl import FileError, JsonlRows, write_jsonl, write_text
from utils.curation import screening as judging
from utils.curation.kappa import CONSTANT, HEADINGS, Agreement
from utils.curation.verdict import FIELDS, STRICT, Verdict, is_kept

PROGRAM = "filter_again"
Row = dict[str, Any]


class FilteredRows:
    """The rows of several outputs of filter_with_llm, one file after the other, read anew at each iteration."""

    def __init__(self, paths: list[Path], limit: int | None) -> None:
        """Raises FileError where a file cannot be read or a row has no verdict of the first pass."""
        self._files = [JsonlRows(path, ("id", "question")) for path in paths]
        self._limit = limit
        for path, rows in zip(paths, self._files, strict=True):
            for row in rows:
                first_verdict(row, path)

    def __len__(self) -> int:
        count = sum(len(rows) for rows in self._files)
        return min(count, self._limit or count)

    def __iter__(self) -> Iterator[Row]:
        return islice(chain.from_iterable(self._files), self._limit)


def first_verdict(row: Row, path: Path | None = None) -> Verdict:
    """What the first pass said. Raises FileError if the row holds no such thing."""
    try:
        return Verdict.model_validate(row.get("verdict"))
    except ValidationError:
        where = f"{path}, row {row['id']!r}"
        raise FileError(f"{where}: expected the `verdict` of filter_with_llm, got {row.get('verdict')!r}") from None


class Comparison:
    """Both verdicts of every row, read from the journal at each pass."""

    def __init__(self, rows: FilteredRows, outcome: Outcome[Row], model: str) -> None:
        self._rows, self._outcome, self._model = rows, outcome, model
        self.agreement = Agreement((*FIELDS, "kept"))

    def pairs(self) -> Iterator[tuple[Row, Verdict, Verdict]]:
        """Rows that have a second verdict, with both."""
        for row, found in zip(self._rows, self._outcome, strict=True):
            if not isinstance(found, Failed):
                yield row, first_verdict(row), Verdict(**found)

    def judged(self) -> Iterator[tuple[Row, bool]]:
        """Rows of the outputs, and whether both passes keep them."""
        for row, first, second in self.pairs():
            told = {"task_type": second.task_type, "second_verdict": second.model_dump() | {"model": self._model}}
            yield row | told, is_kept(first) and is_kept(second)

    def disagreements(self) -> Iterator[Row]:
        """The rows in which the passes differ; counts every row in `agreement` on the way."""
        for row, first, second in self.pairs():
            differ = self.agreement.add(compared(first), compared(second))
            if differ:
                verdicts = {"first": first.model_dump(), "second": second.model_dump()}
                yield {"id": row["id"], "question": row["question"], "differ": differ, **verdicts}


def compared(verdict: Verdict) -> dict[str, Any]:
    """The values of a verdict that are compared."""
    return {name: getattr(verdict, name) for name in FIELDS} | {"kept": is_kept(verdict)}


def print_agreement(agreement: Agreement) -> None:
    """The agreement as a table on stderr."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*HEADINGS, title="agreement of both passes")
    for line in agreement.table():
        table.add_row(*line)
    console = Console(stderr=True)
    console.print(table)
    if agreement.has_constant:
        console.print(CONSTANT, highlight=False)


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, nargs="+", help="JSONL files of filter_with_llm")
    judging.add_options(parser)
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> int:
    """The program's body; returns the exit code."""
    rows = FilteredRows(options.input, options.limit)
    client = judging.open_client(options)
    disagreements, report = judging.beside(options.output, "disagreements"), options.output.with_suffix(".agreement.md")
    with judging.open_work(PROGRAM, options, client, STRICT, options.input, (disagreements, report)) as journal:
        outcome = judging.ask_all(PROGRAM, rows, client, STRICT, journal, options.concurrency)
        comparison = Comparison(rows, outcome, client.model)
        counts = judging.write_outputs(options.output, comparison.judged, rows, outcome)
        write_jsonl(disagreements, comparison.disagreements(), force=True)
        write_text(report, comparison.agreement.markdown(), force=True)
        print_agreement(comparison.agreement)
        return judging.conclude(PROGRAM, options.output, counts, outcome, client)


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    options = parse_arguments(argv)
    return judging.run_safely(PROGRAM, lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
