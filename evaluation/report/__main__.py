"""Open runs, evaluations and demos as one page: curves, tables and every episode in full.

    .venv/bin/python -m evaluation.report runs/NAME                          # runs/NAME/report.html
    .venv/bin/python -m evaluation.report BEFORE AFTER --out compared.html   # two to eight, side by side
    .venv/bin/python -m evaluation.report runs/NAME --live                   # follows the run until its end

The page is one file without an address in it: open it from disk, send it, keep it. docs/runs.md
explains it and lists the files that are read. Without --out it lies in the first folder and
replaces what is there. Exit codes: 0 done, 1 failed, 2 wrong usage.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from common.command import new_parser, run_command
from common.files import refuse_existing
from common.jsonl import write_text
from common.language import said
from common.stopping import stop_in_order
from evaluation.report.page import REPORT, read

LIVE_SECONDS = 15  # between two pages of --live; an open one reloads itself as often


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("folders", type=Path, nargs="+", metavar="FOLDER", help="a run, an evaluation or a demo")
    add("--out", type=Path, metavar="FILE", help=f"default: {REPORT} in the first folder")
    live = f"write the page every {LIVE_SECONDS} s, until every folder has its end, or Ctrl-C"
    add("--live", action="store_true", help=live)
    add("--force", action="store_true", help="replace --out where it exists")
    return parser.parse_args(argv)


def report(arguments: argparse.Namespace) -> None:
    """Read the folders and write the page. Raises UsageError: a folder, or an output that exists."""
    out = arguments.out or arguments.folders[0] / REPORT
    replaces = arguments.force or arguments.out is None
    refuse_existing(out, replaces)
    page = read(arguments.folders)
    if arguments.live:
        follows = "{out} follows the run until it has its summary; Ctrl-C ends it"
        print(said(follows, out=out), flush=True)
    while arguments.live and not all(one.run.summary or one.run.scores for one in page.tallies):
        write_text(out, page.html(LIVE_SECONDS), force=True)
        time.sleep(LIVE_SECONDS)
        page = read(arguments.folders)
    write_text(out, page.html(), force=True)
    print(out)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    stop_in_order()
    return run_command("report", lambda: report(arguments))


if __name__ == "__main__":
    sys.exit(main())
