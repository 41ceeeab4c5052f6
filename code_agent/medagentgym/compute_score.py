"""Print what the episodes of a folder scored: success and pass@k.

    .venv/bin/python code_agent/compute_score.py --local_path workdir/ehr_demo/tiny/test

With several episodes of a task (`rollout.py`), success averages each task's share of right
episodes, and pass@k is the chance that one of k is right. Unfinished episodes are named and not
counted. Exit codes: 0 done, 2 wrong usage.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from statistics import fmean

from code_agent.medagentgym.histories import NAME, History, read_all
from common.command import UsageError, new_parser, run_command


@dataclass(frozen=True)
class Scores:
    """Numbers of finished episodes. Every task has the same weight. k: what pass_at_k is for."""

    tasks: int
    episodes: int
    success: float
    score: float
    k: int
    pass_at_k: float

    def __str__(self) -> str:
        """Return two lines. The last one has the reference's form."""
        return (
            f"{self.tasks} tasks, {self.episodes} episodes, score {self.score:.1%}, "
            f"pass@{self.k} {self.pass_at_k:.1%}\nSuccess Rate: {self.success}"
        )


def scores_of(histories: Iterable[History]) -> Scores:
    """Return the numbers of finished episodes. Raises UsageError without any."""
    tasks: dict[int, list[History]] = defaultdict(list)
    for history in histories:
        tasks[history.index].append(history)
    if not tasks:
        raise UsageError("there is no finished episode; look into the folder, or play some first")
    fewest = min(len(each) for each in tasks.values())
    successes = []
    scores = []
    passed = []
    for each in tasks.values():
        successes.append(fmean(one.succeeded for one in each))
        scores.append(fmean(one.score for one in each))
        wrong = sum(not one.succeeded for one in each)
        passed.append(1 - comb(wrong, fewest) / comb(len(each), fewest))
    episodes = sum(len(each) for each in tasks.values())
    return Scores(len(tasks), episodes, fmean(successes), fmean(scores), fewest, fmean(passed))


def show(folder: Path) -> None:
    """Print a folder's scores. Raises UsageError: it does not exist, or nothing in it is finished."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give one with files history_<i>.json")
    histories = read_all(folder)
    print(scores_of(histories))
    there = [path for path in folder.iterdir() if NAME.fullmatch(path.name)]
    if unfinished := len(there) - len(histories):
        print(f"{unfinished} episodes are not finished and not counted", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("--local_path", type=Path, required=True, help="folder of history files")
    arguments = parser.parse_args(argv)
    return run_command("compute_score", lambda: show(arguments.local_path))


if __name__ == "__main__":
    sys.exit(main())
