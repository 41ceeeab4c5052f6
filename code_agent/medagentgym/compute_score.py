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
from math import comb
from pathlib import Path
from statistics import fmean

from code_agent.medagentgym.histories import NAME, History, read_all
from common.command import UsageError, new_parser, run_command


def scores_of(histories: Iterable[History]) -> tuple[float, str]:
    """Return the success rate of finished episodes, where every task has the same weight, and all
    numbers in two lines, of which the last has the reference's form.

    Raises UsageError without any.
    """
    tasks: dict[int, list[History]] = defaultdict(list)
    for history in histories:
        tasks[history.index].append(history)
    if not tasks:
        raise UsageError("there is no finished episode; look into the folder, or play some first")
    fewest = min(map(len, tasks.values()))
    successes = []
    scores = []
    passed = []
    for each in tasks.values():
        successes.append(fmean(one.succeeded for one in each))
        scores.append(fmean(one.score for one in each))
        wrong = sum(not one.succeeded for one in each)
        passed.append(1 - comb(wrong, fewest) / comb(len(each), fewest))
    success = fmean(successes)
    return success, (
        f"{len(tasks)} tasks, {sum(map(len, tasks.values()))} episodes, score {fmean(scores):.1%}, "
        f"pass@{fewest} {fmean(passed):.1%}\nSuccess Rate: {success}"
    )


def show(folder: Path) -> None:
    """Print a folder's scores. Raises UsageError: it does not exist, or nothing in it is finished."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give one with files history_<i>.json")
    histories = read_all(folder)
    _, shown = scores_of(histories)
    print(shown)
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
