"""The replies of an episode, each with what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

# Under "submit" an answer is handed in once, under "oracle" a right output ends the episode
ENDINGS = ("submit", "oracle")
LOOP = 3  # so many runs of the same program are a loop


@dataclass(frozen=True)
class Event:
    """A reply and its outcome. action: "" if the reply had none. problem: why it was refused.

    printed: by a run. worth: the value of what was handed in, if anything was.
    """

    action: str
    params: dict[str, Any] = field(default_factory=dict)
    kind: str = ""
    status: str = ""
    printed: str = ""
    problem: str = ""
    seconds: float = 0.0
    worth: float | None = None

    @property
    def ran(self) -> bool:
        return self.kind == "code_execution"

    @property
    def raised(self) -> bool:
        return self.status == "FAILED"


def loops(events: Sequence[Event]) -> bool:
    """Return whether the same program was run LOOP times."""
    runs = [event for event in events if event.action == "validate_code"]
    often = Counter(str(event.params.get("code")) for event in runs)
    return max(often.values(), default=0) >= LOOP
