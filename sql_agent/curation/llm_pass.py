"""What the programs share that put every row before an LLM: options, the run over all rows, files,
exit codes.

A run's files beside OUT.jsonl: OUT.dropped.jsonl, OUT.failed.jsonl if a row failed,
OUT.jsonl.journal until every row has a result. The same command given again tries only the failed
rows.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from common.command import new_parser, positive, run_command
from common.files import file_digest, refuse_inputs
from common.journal import Failed, open_journal, run_all
from common.jsonl import JsonlRows, write_jsonl
from common.llm import LLMClient, LLMError, client_from_settings
from common.settings import load_settings

Row = dict[str, Any]
AFTERWARDS = "results so far are kept: give the same command again to go on"
LIMITS = ("model", "timeout", "concurrency", "requests_per_minute")  # options that the client takes
EPILOG = """
May be killed at any moment: the same command goes on, and a reply that arrived is never paid for
twice. Rows whose call finally fails are in OUT.failed.jsonl, counted, and tried again by the same
command.
Exit codes: 0 done, 1 rows failed or the endpoint does not work, 2 wrong usage, 130 interrupted."""
SHOWN = 5  # failures named on the terminal


class Work(Protocol):
    """The work on a row; rows of one key are done once.

    `depends` is what results depend on besides the model, its endpoint and the input.
    """

    depends: Row

    def key(self, row: Row) -> str: ...

    async def __call__(self, row: Row) -> Row: ...


def run_program(
    program: str,
    doc: str | None,
    body: Callable[[argparse.Namespace, JsonlRows, LLMClient], int],
    argv: Sequence[str] | None,
    add_more: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> int:
    """Run the command line that all of these programs share, with what `add_more` adds, and return
    the body's exit code.

    The body is given the options, the rows of the inputs, and the client of the options and
    settings with the cache of LLM_CACHE.
    """
    parser = new_parser(doc, epilog=EPILOG)
    add = parser.add_argument
    add("input", type=Path, nargs="+", help="JSONL files with id and question")
    add("--output", type=Path, required=True, metavar="OUT.jsonl", help="the rows that are kept")
    add("--model", help="litellm's name of the LLM (default: TEACHER_MODEL)")
    add("--limit", type=positive(int), metavar="N", help="only the first N rows, for a try")
    add(
        "--concurrency",
        type=positive(int),
        default=8,
        metavar="N",
        help="calls at once (default: 8)",
    )
    add(
        "--requests-per-minute",
        type=positive(float),
        metavar="N",
        help="calls started a minute (default: no limit)",
    )
    add(
        "--timeout",
        type=positive(float),
        default=180.0,
        metavar="S",
        help="seconds for a row, retries included (180)",
    )
    add(
        "--force",
        action="store_true",
        help="replace existing outputs and start over; known replies cost no call",
    )
    add_more(parser)
    options = parser.parse_args(argv)

    def run() -> int:
        rows = JsonlRows(*options.input, texts=("id", "question"), limit=options.limit)
        settings = load_settings()
        limits = {name: getattr(options, name) for name in LIMITS}
        return body(
            options, rows, client_from_settings(settings, cache=settings.llm_cache, **limits)
        )

    return run_command(program, run, AFTERWARDS)


def beside(output: Path, kind: str) -> Path:
    """Return OUT.kind.jsonl for OUT.jsonl."""
    return output.with_name(f"{output.stem}.{kind}{output.suffix or '.jsonl'}")


def digest(text: str) -> str:
    """Return a short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def run_pass(
    program: str,
    options: argparse.Namespace,
    rows: JsonlRows,
    client: LLMClient,
    work: Work,
    *,
    judge: Callable[[Row, Row], tuple[Row, bool]],
    others: tuple[Path, ...] = (),
    finish: Callable[[], None] = lambda: None,
    describe: Callable[[], str] | None = None,
) -> int:
    """Do the `work` of every row, write the outputs and return the exit code.

    `judge` makes an output's row of a row and its result, and says whether it is kept; it is called
    once for each row that has a result, in order, and then `finish`, to write the `others`.

    Raises:
        FileError: an output exists (without --force) or is an input; JournalError, RunError: see
            common/journal.py.
    """
    dropped = beside(options.output, "dropped")
    failed = beside(options.output, "failed")
    refuse_inputs((options.output, dropped, failed, *others), rows.paths)
    where = {"program": program, "model": client.model, "endpoint": client.endpoint}
    fingerprint = {
        **where,
        **work.depends,
        "input": ",".join(file_digest(path)[:16] for path in rows.paths),
    }
    with open_journal(
        options.output, fingerprint, force=options.force, others=(dropped, failed, *others)
    ) as journal:
        everything = run_all(
            rows,
            key=work.key,
            work=work,
            journal=journal,
            concurrency=options.concurrency,
            title=program,
            describe=describe or (lambda: str(client.usage)),
            failures=LLMError,
        )
        judged: list[tuple[Row, bool]] = []
        errors: list[Row] = []
        for row, result in zip(rows, asyncio.run(everything), strict=True):
            if isinstance(result, Failed):
                errors.append(row | {"error": result.reason})
            else:
                judged.append(judge(row, result))
        kept = write_jsonl(options.output, (row for row, is_kept in judged if is_kept), force=True)
        left = write_jsonl(dropped, (row for row, is_kept in judged if not is_kept), force=True)
        print(
            f"{program}: {kept:,} kept in {options.output}, "
            f"{left:,} dropped in {dropped}; {client.usage}"
        )
        finish()
        if not errors:
            failed.unlink(missing_ok=True)  # written by an earlier run
            journal.remove()
            return 0
    write_failed(program, failed, errors)
    return 1


def write_failed(program: str, path: Path, errors: Sequence[Row]) -> None:
    """Write the rows that failed, and print the first reasons and what to do."""
    write_jsonl(path, errors, force=True)
    for reason in list(dict.fromkeys(row["error"] for row in errors))[:SHOWN]:
        print(f"{program}: {reason}", file=sys.stderr)
    again = "give the same command again to try them, and only them, once more"
    print(f"{program}: {len(errors):,} rows failed and are in {path}; {again}", file=sys.stderr)
