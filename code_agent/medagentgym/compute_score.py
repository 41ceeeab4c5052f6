"""What the episodes of a folder scored: success, pass@k, best of k by majority, and a table by
task.

    python code_agent/compute_score.py --local_path workdir/ehr_demo/tiny/test
    python code_agent/compute_score.py --local_path workdir/ehr_demo/tiny/test --json

Finished episodes count with their own results. The others are named and do not count as failures.
With several episodes of a task (`rollout.py`), success is the mean over tasks of each task's share
of right episodes, pass@k the chance that one of k is right, and best of k whether the answer that
most of them gave is right. Exit codes: 0 done, 2 wrong usage.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import comb
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from code_agent.medagentgym.histories import NAME, History, read_all
from common.command import UsageError, new_parser, run_command

Key = TypeVar("Key", bound=Hashable)


def scores_of(histories: Iterable[History]) -> dict[str, Any]:
    """Return the numbers of a folder, overall and by task type.

    Raises UsageError if there is no finished episode.
    """
    found = list(histories)
    if not found:
        raise UsageError("there is no finished episode; look into the folder, or play some first")
    groups = _grouped(found, lambda one: str(one.ending.get("task_type") or "unknown"))
    by_type = {kind: _scores(part) for kind, part in sorted(groups.items())}
    return {"overall": _scores(found), "by_task_type": by_type}


def success_rate(histories: Iterable[History]) -> float:
    """Return the mean over tasks of the share of right episodes: a task of which some episodes are
    unscored weighs as much as any other.
    """
    tasks = _grouped(histories, lambda one: one.index).values()
    return fmean(fmean(one.succeeded for one in each) for each in tasks)


def _scores(histories: Sequence[History]) -> dict[str, Any]:
    tasks = _grouped(histories, lambda one: one.index).values()
    counts = [(len(each), sum(one.succeeded for one in each)) for each in tasks]
    fewest = min(number for number, _ in counts)
    return {
        "tasks": len(tasks),
        "episodes": len(histories),
        "success": success_rate(histories),
        "score": fmean(fmean(one.score for one in each) for each in tasks),
        "pass@k": {
            str(k): fmean(1 - comb(n - right, k) / comb(n, k) for n, right in counts)
            for k in range(1, fewest + 1)
        },
        "best_of_k": fmean(majority(each).succeeded for each in tasks),
    }


def majority(histories: Sequence[History]) -> History:
    """Return the first episode with the most frequent answer, or one without an answer if no
    episode has one.
    """
    answers = [" ".join(str(one.ending.get("answer") or "").split()) for one in histories]
    often = Counter(answer for answer in answers if answer)
    return histories[answers.index(often.most_common(1)[0][0])] if often else histories[0]


def _grouped(
    histories: Iterable[History], key: Callable[[History], Key]
) -> dict[Key, list[History]]:
    groups: dict[Key, list[History]] = defaultdict(list)
    for history in histories:
        groups[key(history)].append(history)
    return groups


def table(scores: dict[str, Any]) -> str:
    """Return the numbers as lines: one for each task type, one for all, and the success rate."""
    rows = [*scores["by_task_type"].items(), ("all", scores["overall"])]
    width = max(len(name) for name, _ in rows)
    lines = [f"{'task':{width}}  tasks  episodes  success  pass@k  best of k"]
    for name, part in rows:
        top = list(part["pass@k"].values())[-1]
        numbers = (
            f"{part['tasks']:5}  {part['episodes']:8}  "
            f"{part['success']:7.1%}  {top:6.1%}  {part['best_of_k']:9.1%}"
        )
        lines.append(f"{name:{width}}  {numbers}")
    return "\n".join([*lines, f"Success Rate: {scores['overall']['success']}"])


def show(folder: Path, as_json: bool) -> None:
    """Print a folder's scores.

    Raises UsageError if there is no folder, or nothing finished in it.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give one with files history_<i>.json")
    histories = read_all(folder)
    there = [path for path in folder.iterdir() if NAME.fullmatch(path.name)]
    scores = scores_of(histories) | {"unfinished": len(there) - len(histories)}
    print(json.dumps(scores, ensure_ascii=False) if as_json else table(scores))
    if scores["unfinished"]:
        missing = f"{scores['unfinished']} episodes are not finished and not counted"
        print(missing, file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("--local_path", type=Path, required=True, help="folder of history files")
    parser.add_argument("--json", action="store_true", help="all numbers, as JSON")
    arguments = parser.parse_args(argv)
    return run_command("compute_score", lambda: show(arguments.local_path, arguments.json))


if __name__ == "__main__":
    sys.exit(main())
