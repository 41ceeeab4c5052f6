"""Files of played episodes: MedAgentGym's `history_<i>.json` and `history_<i>_<k>.json`.

The last element holds the result. A file with "unscored" (the machine failed) is played again.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from statistics import fmean
from typing import Any

from common.files import replacing
from episodes.episode import Message

NAME = re.compile(r"history_(\d+)(?:_(\d+))?\.json")


@dataclass(frozen=True)
class History:
    """ending: the last element, with result, score and this project's task, answer, stop_reason."""

    index: int
    number: int
    messages: list[Message]
    ending: Mapping[str, Any]

    @property
    def score(self) -> float:
        """The score. A file without one, such as the reference's, has 1 or 0."""
        return float(self.ending.get("score", self.succeeded))

    @property
    def succeeded(self) -> bool:
        return bool(self.ending["result"] == "success")


def write(path: Path, messages: Sequence[Message], ending: Mapping[str, Any]) -> None:
    """Write a file, completely or not at all."""
    text = json.dumps([*messages, ending], ensure_ascii=False, indent=1)
    with replacing(path) as draft:
        draft.write_text(f"{text}\n", encoding="utf-8")


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
    found = [history for path in folder.iterdir() if (history := read(path))]
    return sorted(found, key=lambda history: (history.index, history.number))


def scores_of(histories: Iterable[History]) -> tuple[float, str]:
    """Return the success rate, where every task has the same weight, and all numbers in two lines,
    of which the last has the reference's form.
    """
    tasks: dict[int, list[History]] = defaultdict(list)
    for history in histories:
        tasks[history.index].append(history)
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
