"""One filter for the programs that put every row before an LLM: options, run, files.

Beside OUT.jsonl: OUT.dropped.jsonl, OUT.failed.jsonl, and OUT.jsonl.journal until every row has a
result. The same command tries only the failed rows again.
"""

import argparse
import asyncio
import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.command import filled, new_parser, positive, run_command
from common.files import file_digest, refuse_inputs
from common.journal import Failed, open_journal, run_all
from common.jsonl import rows_with_texts, write_jsonl
from common.llm.client import client_from_settings
from common.llm.errors import LLMError
from common.settings import load_settings

Row = dict[str, Any]
AFTERWARDS = "results so far are kept: give the same command again to go on"
EPILOG = """
May be killed at any moment: the same command goes on, and a row with a result is never paid for
twice. Rows whose call finally fails are in OUT.failed.jsonl, and the same command tries them again.
The exit code is then 1."""
SHOWN = 5  # failures named on the terminal
SECONDS = 180.0  # for a row, retries included


class LLMFilter:
    """Asks an LLM about every row. Subclasses say what is asked and what is kept."""

    program = ""
    switches: Mapping[str, str] = {}  # flags of this program only, with their help

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rows = rows_with_texts(options.input, ("id", "question"))
        self.settings = load_settings()
        self.client = client_from_settings(
            self.settings,
            cache=self.settings.llm_cache,
            model=options.model,
            timeout=SECONDS,
            concurrency=options.concurrency,
        )
        self.depends: Row = {}  # on what results depend besides the model, its endpoint and the input

    async def ask(self, row: Row) -> Row:
        """Return the result for a row. Rows with one question share it. Raises LLMError."""
        raise NotImplementedError

    def judge(self, row: Row, result: Row) -> tuple[Row, bool]:
        """Return the output row, and whether it is kept. Called in order."""
        raise NotImplementedError

    def run(self) -> int:
        """Ask about every row, write the outputs and return the exit code."""
        output = self.options.output
        dropped = beside(output, "dropped")
        failed = beside(output, "failed")
        refuse_inputs((output, dropped, failed), self.options.input)
        fingerprint = {
            "program": self.program,
            "model": self.client.model,
            "endpoint": self.client.endpoint,
            **self.depends,
            "input": ",".join(file_digest(path)[:16] for path in self.options.input),
        }
        force = self.options.force
        with open_journal(output, fingerprint, force=force, others=(dropped, failed)) as journal:
            everything = run_all(
                self.rows,
                key=lambda row: digest(row["question"]),
                work=self.ask,
                journal=journal,
                concurrency=self.options.concurrency,
                title=self.program,
                describe=lambda: str(self.client.usage),
                failures=LLMError,
            )
            kept: list[Row] = []
            left: list[Row] = []
            errors: list[Row] = []
            for row, result in zip(self.rows, asyncio.run(everything), strict=True):
                if isinstance(result, Failed):
                    errors.append(row | {"error": result.reason})
                    continue
                written, is_kept = self.judge(row, result)
                (kept if is_kept else left).append(written)
            write_jsonl(output, kept, force=True)
            write_jsonl(dropped, left, force=True)
            counts = f"{len(kept):,} kept in {output}, {len(left):,} dropped in {dropped}"
            print(f"{self.program}: {counts}; {self.client.usage}")
            if not errors:
                failed.unlink(missing_ok=True)  # written by an earlier run
                journal.remove()
                return 0
        write_jsonl(failed, errors, force=True)
        for reason in list(dict.fromkeys(row["error"] for row in errors))[:SHOWN]:
            print(f"{self.program}: {reason}", file=sys.stderr)
        print(
            f"{self.program}: {len(errors):,} rows failed and are in {failed}; "
            "give the same command again to try them, and only them, once more",
            file=sys.stderr,
        )
        return 1


def run_filter(kind: type[LLMFilter], doc: str | None, argv: Sequence[str] | None) -> int:
    """Run a filter's command line and return the exit code."""
    parser = new_parser(doc, epilog=EPILOG)
    add = parser.add_argument
    add("input", type=Path, nargs="+", help="JSONL files with id and question")
    add("--output", type=Path, required=True, metavar="OUT.jsonl", help="the rows that are kept")
    add("--model", type=filled, help="litellm's name of the LLM (default: TEACHER_MODEL)")
    count = positive(int)
    add("--concurrency", type=count, default=8, metavar="N", help="calls at once (default: 8)")
    again = "replace existing outputs and start over; known replies cost no call"
    add("--force", action="store_true", help=again)
    for switch, what in kind.switches.items():
        add(switch, action="store_true", help=what)
    options = parser.parse_args(argv)
    return run_command(kind.program, lambda: kind(options).run(), AFTERWARDS)


def digest(text: str) -> str:
    """Return a short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def beside(output: Path, kind: str) -> Path:
    """Return OUT.kind.jsonl for OUT.jsonl."""
    return output.with_name(f"{output.stem}.{kind}{output.suffix or '.jsonl'}")
