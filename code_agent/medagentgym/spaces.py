"""Spaces of texts for gymnasium, whose own spaces hold arrays, and texts of a few letters.

observations()          # the space of what `code_agent.medagentgym.env` shows
"""

from __future__ import annotations

from typing import Any

from gymnasium import spaces


class Anything(spaces.Space[Any]):
    """Any value of a type; a sample is the empty one."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        super().__init__(shape=None, dtype=None)

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        return self.kind()

    def contains(self, x: Any) -> bool:
        return isinstance(x, self.kind)


def observations() -> spaces.Dict:
    """Return the fields of every observation. status: of a run, SUCCESS or FAILED, else ""; times
    are in seconds.
    """
    text = Anything(str)
    time = Anything(float)
    message = spaces.Dict({"role": text, "timestamp": time, "message": text})
    texts = dict.fromkeys(("type", "env_message", "status", "goal"), text)
    times = dict.fromkeys(("execution_time", "elapsed_time"), time)
    said = {
        "chat_messages": spaces.Sequence(message),
        "history": Anything(list),
        "info": Anything(dict),
    }
    return spaces.Dict({**texts, **times, **said})
