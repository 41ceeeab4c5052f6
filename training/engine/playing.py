"""How many episodes of a step have ended, in a file for whoever watches the run."""

import json
import time
from pathlib import Path
from typing import Any

from common.jsonl import write_text

FILE = "playing.json"
SECONDS = 5.0  # between two writings


class Playing:
    """Counts the episodes of the step or validation that is played."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / FILE
        self._counted: dict[str, Any] = {}
        self._written = 0.0

    def begin(self, mode: str, step: int, episodes: int) -> None:
        """Note that so many episodes begin."""
        self._counted = {"mode": mode, "step": step, "ended": 0, "of": episodes}

    def end(self) -> None:
        """Note that an episode has ended."""
        self._counted["ended"] += 1
        all_ended = self._counted["ended"] == self._counted["of"]
        if all_ended or time.monotonic() - self._written >= SECONDS:
            self._written = time.monotonic()
            write_text(self._path, json.dumps(self._counted), force=True)
