"""How episodes end, and why some have no score, for every agent (`outcomes.toml`).

A stop reason is the policy's doing and scored. A cause is the machine's and leaves no score.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

_LISTS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
STOP_REASONS = _LISTS["stop_reasons"]
UNSCORED = _LISTS["unscored"]


class EpisodeError(RuntimeError):
    """The machine failed, which says nothing about the policy. `cause`: one of `UNSCORED`."""

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(f"{cause}: {detail}")
        if cause not in UNSCORED:
            raise ValueError(f"{cause!r} is no cause of episodes/outcomes.toml")
        self.cause = cause


class PolicyStop(Exception):
    """The policy cannot go on. `reason`: one of `STOP_REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
