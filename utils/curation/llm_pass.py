"""What the programs share that put every row before an LLM: options, the run over all rows, files, exit codes.

A run's files beside OUT.jsonl: OUT.dropped.jsonl, OUT.failed.jsonl if a row failed, OUT.jsonl.journal until every row
has a result. Failed rows are tried again, and only they, when the same command is given again.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from common.command import positive
from common.files import FileError, file_digest
from common.journal import Failed, Outcome, open_journal, run_all
from common.jsonl import write_jsonl
from common.llm import LLMClient, LLMError, client_from_settings
from common.settings import load_settings

Row = dict[str, Any]
AFTERWARDS = "results so far are kept: give the same command again to go on"
SHOWN = 5  # failures named on the terminal


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options all of these programs have."""
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="OUT.jsonl", help="the rows that are kept")
    add("--model", help="litellm's name of the LLM (default: TEACHER_MODEL)")
    add("--limit", type=positive(int), metavar="N", help="only the first N rows, for a try")
    add("--concurrency", type=positive(int), default=8, metavar="N", help="calls at once (default: 8)")
    add("--requests-per-minute", type=positive(float), metavar="N", help="calls started a minute (default: no limit)")
    add("--timeout", type=positive(float), default=180.0, metavar="S", help="seconds for a row, retries included (180)")
    add("--force", action="store_true", help="replace existing outputs and start over; known replies cost no call")


def beside(output: Path, kind: str) -> Path:
    """OUT.jsonl -> OUT.kind.jsonl"""
    return output.with_name(f"{output.stem}.{kind}{output.suffix or '.jsonl'}")


def digest(text: str) -> str:
    """A short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def open_client(options: argparse.Namespace) -> LLMClient:
    """The client of the options and settings, with the cache of LLM_CACHE."""
    settings = load_settings()
    return client_from_settings(
        settings,
        model=options.model,
        cache=settings.llm_cache,
        timeout=options.timeout,
        concurrency=options.concurrency,
        requests_per_minute=options.requests_per_minute,
    )


def run_pass(
    program: str,
    options: argparse.Namespace,
    rows: Iterable[Row],
    client: LLMClient,
    *,
    inputs: list[Path],
    depends: Mapping[str, Any],
    key: Callable[[Row], str],
    work: Callable[[Row], Awaitable[Row]],
    judge: Callable[[Row, Row], tuple[Row, bool]],
    others: tuple[Path, ...] = (),
    finish: Callable[[Iterator[tuple[Row, Row]]], None] = lambda results: None,
    describe: Callable[[], str] | None = None,
) -> int:
    """Do the `work` of every row, write the outputs and return the exit code.

    `key` and `work` are those of run_all; `judge` makes an output's row of a row and its result, and says whether it is
    kept; `finish` is given all rows with results, to write the `others`. Results depend on the model, its endpoint, the
    input and what `depends` names.

    Raises:
        FileError: an output exists (without --force) or is an input; JournalError, RunError: see common/journal.py.
    """
    dropped, failed = beside(options.output, "dropped"), beside(options.output, "failed")
    for file in (options.output, dropped, failed, *others):
        if file.resolve() in {path.resolve() for path in inputs}:
            raise FileError(f"{file} is an input and would be an output; give another --output")
    where = {"program": program, "model": client.model, "endpoint": client.endpoint}
    fingerprint = {**where, **depends, "input": ",".join(file_digest(path)[:16] for path in inputs)}
    with open_journal(options.output, fingerprint, force=options.force, others=(dropped, failed, *others)) as journal:
        everything = run_all(
            rows,
            key=key,
            work=work,
            journal=journal,
            concurrency=options.concurrency,
            title=program,
            describe=describe or (lambda: str(client.usage)),
            failures=LLMError,
        )
        outcome = asyncio.run(everything)

        def judged(wanted: bool) -> Iterator[Row]:
            pairs = (judge(row, result) for row, result in _results(rows, outcome))
            return (row for row, is_kept in pairs if is_kept == wanted)

        counts = [
            write_jsonl(file, judged(kept), force=True) for file, kept in ((options.output, True), (dropped, False))
        ]
        print(f"{program}: {counts[0]:,} kept in {options.output}, {counts[1]:,} dropped in {dropped}; {client.usage}")
        finish(_results(rows, outcome))
        return _conclude(program, rows, outcome, failed)


def _results(rows: Iterable[Row], outcome: Outcome[Row]) -> Iterator[tuple[Row, Row]]:
    return ((row, result) for row, result in zip(rows, outcome, strict=True) if not isinstance(result, Failed))


def _conclude(program: str, rows: Iterable[Row], outcome: Outcome[Row], file: Path) -> int:
    """Write the failed rows and return 1; without any remove the journal and an earlier run's file, and return 0."""
    results = zip(rows, outcome, strict=True)
    failed = [row | {"error": result.reason} for row, result in results if isinstance(result, Failed)]
    if not failed:
        file.unlink(missing_ok=True)
        outcome.journal.remove()
        return 0
    write_jsonl(file, failed, force=True)
    for reason in list(dict.fromkeys(outcome.failed.values()))[:SHOWN]:
        print(f"{program}: {reason}", file=sys.stderr)
    again = "give the same command again to try them, and only them, once more"
    print(f"{program}: {len(failed):,} rows failed and are in {file}; {again}", file=sys.stderr)
    return 1
