"""List training runs and evaluations with their numbers, newest first.

    .venv/bin/python -m evaluation.runs                 # of runs/ and outputs/evaluations/
    .venv/bin/python -m evaluation.runs FOLDER          # of the folders in FOLDER

Exit codes: 0 done, 2 wrong usage.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from common.command import UsageError, new_parser, run_command
from common.language import said
from common.settings import WORK
from evaluation.results import FOLDER
from evaluation.run_folder import DEMO, EVALUATION, Run, kind_of, numbers
from evaluation.tables import Report, number, points

PLACES = (WORK / "runs", FOLDER)
# A narrow terminal leaves out the last ones
HEADER = ("folder", "score or reward", "tasks or steps", "what", "ended", "agent", "when")


def runs_in(place: Path) -> Iterator[Run]:
    """Yield the runs of a place, and the parts of a demo one by one."""
    for folder in place.iterdir() if place.is_dir() else ():
        for part in (folder, *(folder / name for name in DEMO)):
            if kind := kind_of(part):
                yield Run(part, kind, "", folder)


def row_of(run: Run) -> Sequence[str]:
    """Return a run's line: of an evaluation tasks and score, of a training steps and reward."""
    folder = run.folder.relative_to(WORK) if run.folder.is_relative_to(WORK) else run.folder
    about = (run.agent or "–", run.when)
    if run.kind == EVALUATION:
        overall = numbers(run.scores.get("overall"))
        score = points(overall.get("score"))
        ended = "done" if run.scores else "not ended"
        return (str(folder), score, number(overall.get("n"), "g"), run.kind, ended, *about)
    validation = run.summary.get("validation") or {}
    reward = number(numbers(validation.get("reward")).get("mean"), ".3f")
    last = str(run.steps[-1][0]) if run.steps else "–"
    ended = str(run.summary.get("exit_reason") or "not ended")
    return (str(folder), reward, last, run.kind, ended, *about)


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="default: where runs are written")
    arguments = parser.parse_args(argv)

    def body() -> None:
        if arguments.folder and not arguments.folder.is_dir():
            raise UsageError(f"{arguments.folder} is no folder")
        places = [arguments.folder] if arguments.folder else PLACES
        runs: list[Run] = []
        for place in places:
            runs += runs_in(place)
        runs.sort(key=lambda run: run.moment, reverse=True)
        table = [HEADER, *map(row_of, runs)]
        Report(
            said("Runs and evaluations"),
            [said("{count} in {places}", count=len(runs), places=", ".join(map(str, places)))],
            {"": table},
        ).show()

    return run_command("runs", body)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
