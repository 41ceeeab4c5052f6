"""What utils/filter_with_llm.py and utils/filter_again.py share: options, the run over all rows, files, exit codes.

A run's files beside OUT.jsonl: OUT.dropped.jsonl, OUT.failed.jsonl if a row failed, OUT.jsonl.journal until every row
has a verdict. Failed rows are tried again, and only they, when the same command is given again.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from common.journal import Failed, Journal, JournalError, Outcome, RunError, open_journal, run_all
from common.jsonl import FileError, file_digest, write_jsonl
from common.llm import LLMClient, LLMError, client_from_settings
from common.settings import SettingsError, load_settings
from utils.curation.verdict import Verdict, build_messages

Row = dict[str, Any]
INTERRUPTED = 130
SHOWN = 5  # failures named on the terminal


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options both programs have."""
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="OUT.jsonl", help="the rows that are kept")
    add("--model", help="litellm's name of the LLM (default: TEACHER_MODEL)")
    add("--limit", type=positive(int), metavar="N", help="only the first N rows, for a try")
    add("--concurrency", type=positive(int), default=8, metavar="N", help="calls at once (default: 8)")
    add("--requests-per-minute", type=positive(float), metavar="N", help="calls started a minute (default: no limit)")
    add("--timeout", type=positive(float), default=180.0, metavar="S", help="seconds for a row, retries included (180)")
    add("--force", action="store_true", help="replace existing outputs and start over; known replies cost no call")


def positive(kind: type[int] | type[float]) -> Callable[[str], Any]:
    """A type for argparse: a number above 0."""

    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = kind(0)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
        return value

    return parse


def beside(output: Path, kind: str) -> Path:
    """OUT.jsonl -> OUT.kind.jsonl"""
    return output.with_name(f"{output.stem}.{kind}{output.suffix or '.jsonl'}")


def run_safely(program: str, run: Callable[[], int]) -> int:
    """The exit code of `run`; what a user can cause becomes one line: 2 wrong use, 1 failure, 130 Ctrl-C."""
    try:
        return run()
    except (FileError, JournalError, SettingsError) as error:
        code, text = 2, str(error)
    except LLMError as error:
        code, text = 2 if error.cause == "setup" else 1, str(error)
    except RunError as error:
        code, text = 1, f"{error}. Results so far are kept: give the same command again to go on"
    except OSError as error:
        code, text = 1, f"{error}. Results so far are kept: give the same command again to go on"
    except KeyboardInterrupt:
        code, text = INTERRUPTED, "interrupted; verdicts so far are kept: give the same command again to go on"
    print(f"{program}: {text}", file=sys.stderr)
    return code


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


def open_work(
    program: str,
    options: argparse.Namespace,
    client: LLMClient,
    instructions: str,
    inputs: list[Path],
    others: tuple[Path, ...] = (),
) -> Journal:
    """The journal of this program's verdicts: they depend on the model, its endpoint, the prompt and the input.

    `others` are outputs beside those of every run. An output that is an input is refused, --force or not.
    """
    files = (beside(options.output, "dropped"), beside(options.output, "failed"), *others)
    for file in (options.output, *files):
        if file.resolve() in {path.resolve() for path in inputs}:
            raise FileError(f"{file} is an input and would be an output; give another --output")
    schema = json.dumps(Verdict.model_json_schema(), sort_keys=True)
    fingerprint = {
        "program": program,
        "model": client.model,
        "endpoint": client.endpoint,
        "prompt": hashlib.sha256((instructions + schema).encode()).hexdigest()[:16],
        "input": ",".join(file_digest(path)[:16] for path in inputs),
    }
    return open_journal(options.output, fingerprint, force=options.force, others=files)


def ask_all(
    program: str, rows: Iterable[Row], client: LLMClient, instructions: str, journal: Journal, concurrency: int
) -> Outcome[Row]:
    """A verdict, as a dict, for every row. Equal questions are asked once."""

    async def ask(row: Row) -> dict[str, Any]:
        answer = await client.ask(build_messages(row["question"], instructions), Verdict)
        return answer.value.model_dump()

    everything = run_all(
        rows,
        key=lambda row: hashlib.sha256(row["question"].encode()).hexdigest()[:32],
        work=ask,
        journal=journal,
        concurrency=concurrency,
        title=program,
        describe=lambda: str(client.usage),
        failures=LLMError,
    )
    return asyncio.run(everything)


def write_outputs(
    output: Path, judged: Callable[[], Iterator[tuple[Row, bool]]], rows: Iterable[Row], outcome: Outcome[Row]
) -> list[int]:
    """Write kept, dropped and failed rows and say how many each.

    `judged` gives the rows that have a verdict, and whether they are kept, anew at each call.
    """
    failed = (
        row | {"error": result.reason} for row, result in zip(rows, outcome, strict=True) if isinstance(result, Failed)
    )
    counts = [
        write_jsonl(output, (row for row, kept in judged() if kept), force=True),
        write_jsonl(beside(output, "dropped"), (row for row, kept in judged() if not kept), force=True),
        write_jsonl(beside(output, "failed"), failed, force=True),
    ]
    if not counts[-1]:
        beside(output, "failed").unlink()
    return counts


def conclude(program: str, output: Path, counts: list[int], outcome: Outcome[Row], client: LLMClient) -> int:
    """Say what became of the rows; exit code 1 if any failed, else 0 and the journal is removed."""
    kept, dropped, failed = counts
    print(f"{program}: {kept:,} kept in {output}, {dropped:,} dropped in {beside(output, 'dropped')}; {client.usage}")
    if not failed:
        outcome.journal.remove()
        return 0
    for reason in list(dict.fromkeys(outcome.failed.values()))[:SHOWN]:
        print(f"{program}: {reason}", file=sys.stderr)
    print(
        f"{program}: {failed:,} rows failed and are in {beside(output, 'failed')}; "
        "give the same command again to try them, and only them, once more",
        file=sys.stderr,
    )
    return 1
