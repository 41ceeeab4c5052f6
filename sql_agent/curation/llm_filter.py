"""One filter for the programs that put every row before an LLM: options, run, files.

Beside OUT.jsonl: OUT.dropped.jsonl, OUT.failed.jsonl, and OUT.jsonl.journal until every row has a
result. The same command tries only the failed rows again.
"""

from __future__ import annotations

import argparse
import asyncio
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
from sql_agent.curation.prompts import Verdict, digest, screening_messages

Row = dict[str, Any]
AFTERWARDS = "results so far are kept: give the same command again to go on"
EPILOG = """
May be killed at any moment: the same command goes on, and a reply that arrived is never paid for
twice. Rows whose call finally fails are in OUT.failed.jsonl, counted, and tried again by the same
command.
Exit codes: 0 done, 1 rows failed or the endpoint does not work, 2 wrong usage, 130 interrupted."""
SHOWN = 5  # failures named on the terminal


class Work(Protocol):
    """The work on a row, done once for rows of one key.

    depends: what results depend on besides the model, its endpoint and the input.
    """

    client: LLMClient
    depends: Row

    def key(self, row: Row) -> str: ...

    async def __call__(self, row: Row) -> Row: ...


class Screening:
    def __init__(self, client: LLMClient, instructions: str) -> None:
        self.client = client
        self.instructions = instructions
        schema = str(sorted(Verdict.model_json_schema().items()))
        self.depends: Row = {"prompt": digest(instructions + schema)[:16]}

    def key(self, row: Row) -> str:
        return digest(row["question"])

    async def __call__(self, row: Row) -> Row:
        messages = screening_messages(row["question"], self.instructions)
        answer = await self.client.ask(messages, Verdict)
        return answer.value.model_dump()


def run_program(
    program: str,
    doc: str | None,
    body: Callable[[argparse.Namespace, JsonlRows, LLMClient], int],
    argv: Sequence[str] | None,
    add_more: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> int:
    """Run a command line with the further options of `add_more`. Return `body`'s exit code."""
    parser = new_parser(doc, epilog=EPILOG)
    add = parser.add_argument
    add("input", type=Path, nargs="+", help="JSONL files with id and question")
    add("--output", type=Path, required=True, metavar="OUT.jsonl", help="the rows that are kept")
    add("--model", help="litellm's name of the LLM (default: TEACHER_MODEL)")
    add("--limit", type=positive(int), metavar="N", help="only the first N rows, for a try")
    count = positive(int)
    add("--concurrency", type=count, default=8, metavar="N", help="calls at once (default: 8)")
    rate = "calls started a minute (default: no limit)"
    add("--requests-per-minute", type=positive(float), metavar="N", help=rate)
    limit = "seconds for a row, retries included (180)"
    add("--timeout", type=positive(float), default=180.0, metavar="S", help=limit)
    again = "replace existing outputs and start over; known replies cost no call"
    add("--force", action="store_true", help=again)
    add_more(parser)
    options = parser.parse_args(argv)

    def run() -> int:
        rows = JsonlRows(*options.input, texts=("id", "question"), limit=options.limit)
        settings = load_settings()
        client = client_from_settings(
            settings,
            cache=settings.llm_cache,
            model=options.model,
            timeout=options.timeout,
            concurrency=options.concurrency,
            requests_per_minute=options.requests_per_minute,
        )
        return body(options, rows, client)

    return run_command(program, run, AFTERWARDS)


def beside(output: Path, kind: str) -> Path:
    """Return OUT.kind.jsonl for OUT.jsonl."""
    return output.with_name(f"{output.stem}.{kind}{output.suffix or '.jsonl'}")


def filter_rows(
    program: str,
    options: argparse.Namespace,
    rows: JsonlRows,
    work: Work,
    judge: Callable[[Row, Row], tuple[Row, bool]],
    others: tuple[Path, ...] = (),
    finish: Callable[[], None] = lambda: None,
) -> int:
    """Do the `work` of every row, write the outputs and return the exit code.

    judge: makes an output row of a row and its result, and says whether it is kept. It is called in
    order, once for each row with a result. finish: called last, to write the `others`.

    Raises FileError: an output exists (without --force) or is an input. Raises JournalError,
    RunError: see common/journal.py.
    """
    client = work.client
    dropped = beside(options.output, "dropped")
    failed = beside(options.output, "failed")
    refuse_inputs((options.output, dropped, failed, *others), rows.paths)
    fingerprint = {
        "program": program,
        "model": client.model,
        "endpoint": client.endpoint,
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
            describe=lambda: str(client.usage),
            failures=LLMError,
        )
        kept: list[Row] = []
        left: list[Row] = []
        errors: list[Row] = []
        for row, result in zip(rows, asyncio.run(everything), strict=True):
            if isinstance(result, Failed):
                errors.append(row | {"error": result.reason})
                continue
            written, is_kept = judge(row, result)
            (kept if is_kept else left).append(written)
        write_jsonl(options.output, kept, force=True)
        write_jsonl(dropped, left, force=True)
        counts = f"{len(kept):,} kept in {options.output}, {len(left):,} dropped in {dropped}"
        print(f"{program}: {counts}; {client.usage}")
        finish()
        if not errors:
            failed.unlink(missing_ok=True)  # written by an earlier run
            journal.remove()
            return 0
    write_jsonl(failed, errors, force=True)
    reasons = dict.fromkeys(row["error"] for row in errors)
    for reason in list(reasons)[:SHOWN]:
        print(f"{program}: {reason}", file=sys.stderr)
    again = "give the same command again to try them, and only them, once more"
    print(f"{program}: {len(errors):,} rows failed and are in {failed}; {again}", file=sys.stderr)
    return 1
