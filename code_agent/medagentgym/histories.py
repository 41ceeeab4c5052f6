"""Print what the episodes of a folder scored: success and pass@k.

    .venv/bin/python code_agent/compute_score.py --local_path workdir/ehr_demo/tiny/test

Reads MedAgentGym's `history_<i>.json` and `history_<i>_<k>.json`, whose last element holds the
result. With several episodes of a task (`rollout.py`), success averages each task's share of right
episodes, and pass@k is the chance that one of k is right. Unfinished episodes are counted apart.
Exit codes: 0 done, 2 wrong usage.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from math import comb
from pathlib import Path
from statistics import fmean
from typing import Any

from common.command import UsageError, new_parser, run_command
from common.jsonl import write_text
from episodes.episode import Message

NAME = re.compile(r"history_(\d+)(?:_(\d+))?\.json")


@dataclass(frozen=True)
class History:
    """ending: the last element, with result, score and this project's id, answer, stop_reason."""

    index: int
    number: int
    messages: list[Message]
    ending: Mapping[str, Any]

    @property
    def score(self) -> float:
        """The score. A file without one, such as the reference's, has 1 or 0."""
        score = self.ending.get("score")
        return float(score if isinstance(score, int | float) else self.succeeded)

    @property
    def task(self) -> str | int:
        """The task's id. The reference's files and earlier ones have its index alone."""
        return self.ending.get("id", self.index)

    @property
    def succeeded(self) -> bool:
        return bool(self.ending["result"] == "success")


def write(path: Path, messages: Sequence[Message], ending: Mapping[str, Any]) -> None:
    """Write a file, completely or not at all."""
    text = json.dumps([*messages, ending], ensure_ascii=False, indent=1)
    # An answer may hold half of a surrogate pair, which no UTF-8 file can
    write_text(path, text.encode(errors="replace").decode() + "\n", force=True)


def read(path: Path) -> History | None:
    """Return a finished episode, or None if the file is missing, broken or without a result."""
    named = NAME.fullmatch(path.name)
    try:
        *messages, ending = json.loads(path.read_text(encoding="utf-8"))
        if not named or ending["result"] not in ("success", "failure"):
            return None
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return History(int(named[1]), int(named[2] or 0), messages, ending)


def read_all(folder: Path) -> list[History]:
    """Return the finished episodes of a folder, by their numbers."""
    there = folder.iterdir() if folder.is_dir() else ()
    found = filter(None, map(read, there))
    return sorted(found, key=lambda history: (history.index, history.number))


def by_task(histories: Iterable[History]) -> list[list[History]]:
    """Return the episodes of each task. They come sorted."""
    return [list(group) for _, group in groupby(histories, key=lambda one: one.index)]


def scores_of(histories: Iterable[History]) -> tuple[float, str]:
    """Return the success rate, tasks weighing the same, and two lines of all numbers."""
    tasks = by_task(histories)
    fewest = min(map(len, tasks))
    successes = []
    scores = []
    passed = []
    for each in tasks:
        right = sum(one.succeeded for one in each)
        successes.append(right / len(each))
        scores.append(fmean(one.score for one in each))
        passed.append(1 - comb(len(each) - right, fewest) / comb(len(each), fewest))
    success = fmean(successes)
    return success, (
        f"{len(tasks)} tasks, {sum(map(len, tasks))} episodes, score {fmean(scores):.1%}, "
        f"pass@{fewest} {fmean(passed):.1%}\nSuccess Rate: {success}"
    )


def sft_rows(histories: Iterable[History]) -> list[dict[str, Any]]:
    """Return the messages of right episodes without repetitions."""
    right = {repr(one.messages): one for one in histories if one.succeeded}
    return [{"messages": one.messages, "task": one.task} for one in right.values()]


def dpo_rows(histories: Iterable[History]) -> list[dict[str, Any]]:
    """Return pairs of a right and a wrong episode of the same task, each episode once.

    An episode that ended before the first reply is left out.
    """
    rows = []
    for each in by_task(histories):
        replied = [one for one in each if any(map(is_reply, one.messages))]
        right = [one for one in replied if one.succeeded]
        wrong = [one for one in replied if not one.succeeded]
        for chosen, rejected in zip(right, wrong, strict=False):
            prompt = [*takewhile(lambda one: not is_reply(one), chosen.messages)]
            at = len(prompt)
            sides = {"chosen": chosen.messages[at:], "rejected": rejected.messages[at:]}
            rows.append({"prompt": prompt, **sides, "task": chosen.task})
    return rows


def is_reply(message: Message) -> bool:
    return message["role"] == "assistant"


def show(folder: Path) -> None:
    """Print a folder's scores. Raises UsageError: it does not exist, or nothing in it is finished."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give one with files history_<i>.json")
    histories = read_all(folder)
    if not histories:
        raise UsageError(f"{folder} has no finished episode; play some first")
    print(scores_of(histories)[1])
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
