"""How episodes end and why some have no score: the one list of both (`outcomes.toml`), for every
agent and every room.

An episode ends with a stop reason, which is the policy's doing and is scored, or leaves no score
under a cause, which is the machine's. docs/evaluate-and-serve.md shows both tables; a test compares them.
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
    """The machine failed, so the episode says nothing about the policy.

    `cause`: one of `UNSCORED`.
    """

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
