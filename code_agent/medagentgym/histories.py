"""Files of played episodes: MedAgentGym's `history_<i>.json` and `history_<i>_<k>.json`.

The last element holds the result. A file with "unscored" (the machine failed) is played again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.files import replacing
from episodes.episode import Message

NAME = re.compile(r"history_(\d+)(?:_(\d+))?\.json")
FINISHED = ("success", "failure")


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
        if not named or ending["result"] not in FINISHED:
            return None
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return History(int(named[1]), int(named[2] or 0), messages, ending)


def read_all(folder: Path) -> list[History]:
    """Return the finished episodes of a folder, by their numbers."""
    found = [history for path in folder.iterdir() if (history := read(path))]
    return sorted(found, key=lambda history: (history.index, history.number))
