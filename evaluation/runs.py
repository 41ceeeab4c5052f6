"""List training runs and evaluations with their numbers, newest first.

    .venv/bin/python -m evaluation.runs                 # of runs/ and outputs/evaluations/
    .venv/bin/python -m evaluation.runs FOLDER          # of the folders in FOLDER

Exit codes: 0 done, 2 wrong usage.
"""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from common.command import UsageError, new_parser, run_command
from common.language import said
from common.settings import WORK
from evaluation.results import FOLDER
from evaluation.run_folder import EVALUATION, Run, mapping, numbers, runs_of
from evaluation.tables import NOTHING, Report, number, points

PLACES = (WORK / "runs", FOLDER)
# A narrow terminal leaves out the last ones
HEADER = ("folder", "score or reward", "ended", "what", "agent", "when", "tasks or steps")


def row_of(run: Run) -> Sequence[str]:
    """Return a run's line: of an evaluation tasks and score, of a training steps and reward."""
    folder = run.folder.relative_to(WORK) if run.folder.is_relative_to(WORK) else run.folder
    if run.kind == EVALUATION:
        overall = numbers(run.scores.get("overall"))
        score = _of(points(overall.get("score")), 100)
        count = number(overall.get("n"), "g")
        ended = "done" if run.scores else "not ended"
    else:
        validation = mapping(run.summary.get("validation"))
        reward = numbers(validation.get("reward")).get("mean")
        highest = numbers(run.summary.get("environment")).get("highest_reward")
        if "agents" in run.summary:  # each has a highest reward of its own
            highest = None
        score = _of(number(reward, ".3f"), highest)
        count = str(run.steps[-1][0]) if run.steps else "–"
        ended = str(run.summary.get("exit_reason") or "not ended")
    return (str(folder), score, said(ended), said(run.kind), run.agent or "–", run.when, count)


def _of(value: str, most: float | None) -> str:
    return value if value == NOTHING or most is None else value + said(" of {most:g}", most=most)


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="default: where runs are written")
    arguments = parser.parse_args(argv)

    def body() -> None:
        if arguments.folder and not arguments.folder.is_dir():
            raise UsageError(f"{arguments.folder} is no folder")
        places = [arguments.folder] if arguments.folder else PLACES
        runs: list[Run] = []
        for place in filter(Path.is_dir, places):
            for folder in place.iterdir():
                runs += runs_of(folder)
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
