"""Print what the episodes of a folder scored: success, pass@k, best of k by majority.

    python code_agent/compute_score.py --local_path workdir/ehr_demo/tiny/test
    python code_agent/compute_score.py --local_path workdir/ehr_demo/tiny/test --json

With several episodes of a task (`rollout.py`), success averages each task's share of right
episodes. pass@k is the chance that one of k is right. Best of k checks the commonest answer.
Unfinished episodes are named and not counted. Exit codes: 0 done, 2 wrong usage.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import comb
from pathlib import Path
from statistics import fmean
from typing import Any

from code_agent.medagentgym.histories import NAME, History, read_all
from common.command import UsageError, new_parser, run_command


def scores_of(histories: Iterable[History]) -> dict[str, Any]:
    """Return the numbers of finished episodes. Every task has the same weight.

    Raises UsageError without any.
    """
    tasks: dict[int, list[History]] = defaultdict(list)
    for history in histories:
        tasks[history.index].append(history)
    if not tasks:
        raise UsageError("there is no finished episode; look into the folder, or play some first")
    shares = [fmean(one.succeeded for one in each) for each in tasks.values()]
    fewest = min(len(each) for each in tasks.values())
    return {
        "tasks": len(tasks),
        "episodes": sum(len(each) for each in tasks.values()),
        "success": fmean(shares),
        "score": fmean(fmean(one.score for one in each) for each in tasks.values()),
        "pass@k": {
            str(k): fmean(pass_at(k, each) for each in tasks.values()) for k in range(1, fewest + 1)
        },
        "best_of_k": fmean(majority(each).succeeded for each in tasks.values()),
    }


def pass_at(k: int, histories: Sequence[History]) -> float:
    """Return the chance that one of k episodes is right."""
    wrong = sum(not one.succeeded for one in histories)
    return 1 - comb(wrong, k) / comb(len(histories), k)


def majority(histories: Sequence[History]) -> History:
    """Return the first episode with the commonest answer, or one without if none has an answer."""
    answers = [" ".join(str(one.ending.get("answer") or "").split()) for one in histories]
    often = Counter(answer for answer in answers if answer)
    return histories[answers.index(often.most_common(1)[0][0])] if often else histories[0]


def summary(scores: dict[str, Any]) -> str:
    """Return the numbers as lines. The last line has the reference's form."""
    k, top = list(scores["pass@k"].items())[-1]
    return (
        f"{scores['tasks']} tasks, {scores['episodes']} episodes, score {scores['score']:.1%}, "
        f"pass@{k} {top:.1%}, best of k {scores['best_of_k']:.1%}\n"
        f"Success Rate: {scores['success']}"
    )


def show(folder: Path, as_json: bool) -> None:
    """Print a folder's scores. Raises UsageError: it does not exist, or nothing in it is finished."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give one with files history_<i>.json")
    histories = read_all(folder)
    there = [path for path in folder.iterdir() if NAME.fullmatch(path.name)]
    unfinished = len(there) - len(histories)
    scores = scores_of(histories) | {"unfinished": unfinished}
    print(json.dumps(scores) if as_json else summary(scores))
    if unfinished:
        print(f"{unfinished} episodes are not finished and not counted", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("--local_path", type=Path, required=True, help="folder of history files")
    parser.add_argument("--json", action="store_true", help="all numbers, as JSON")
    arguments = parser.parse_args(argv)
    return run_command("compute_score", lambda: show(arguments.local_path, arguments.json))


if __name__ == "__main__":
    sys.exit(main())
