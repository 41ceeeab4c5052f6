"""How many episodes of a step have ended, in a file for whoever watches the run."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

FILE = "playing.json"
SECONDS = 5.0  # between two writings


class Playing:
    """Counts the episodes of the step or validation that is played."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / FILE
        self._mode = ""
        self._step = 0
        self._ended = 0
        self._of = 0
        self._written = 0.0

    def begin(self, mode: str, step: int, episodes: int) -> None:
        """Note that so many episodes begin."""
        self._mode = mode
        self._step = step
        self._ended = 0
        self._of = episodes

    def end(self) -> None:
        """Note that an episode has ended."""
        self._ended += 1
        if self._ended < self._of and time.monotonic() - self._written < SECONDS:
            return
        self._written = time.monotonic()
        found = {"mode": self._mode, "step": self._step, "ended": self._ended, "of": self._of}
        draft = self._path.with_suffix(".draft")  # a reader never meets half a file
        draft.write_text(json.dumps(found), encoding="utf-8")
        draft.replace(self._path)


def read_playing(run_dir: Path) -> dict[str, Any]:
    """Return `mode`, `step`, `ended` and `of`, or {} where nothing has ended yet."""
    try:
        return dict(json.loads((run_dir / FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
