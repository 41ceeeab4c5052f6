"""Spaces of texts for gymnasium: its own ones hold arrays, and texts of a few letters.

observations()          # the space of what `code_agent.env` shows
"""

from __future__ import annotations

from typing import Any

from gymnasium import spaces

LETTERS = "abcdefghijklmnopqrstuvwxyz {}"
SAMPLED = 12  # characters


class Unicode(spaces.Space[str]):
    """Any text."""

    def __init__(self) -> None:
        super().__init__(shape=None, dtype=str)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return "".join(self.np_random.choice(list(LETTERS), SAMPLED))

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)


class Float(spaces.Space[float]):
    """Any number."""

    def __init__(self) -> None:
        super().__init__(shape=(), dtype=float)

    def sample(self, mask: Any = None, probability: Any = None) -> float:
        return float(self.np_random.random())

    def contains(self, x: Any) -> bool:
        return isinstance(x, int | float)


class Anything(spaces.Space[Any]):
    """Any value of a type."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        super().__init__(shape=None, dtype=None)

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        return self.kind()

    def contains(self, x: Any) -> bool:
        return isinstance(x, self.kind)


def observations() -> spaces.Dict:
    """What every observation holds. status: of a run, SUCCESS or FAILED, else ""; times are in seconds."""
    message = spaces.Dict({"role": Unicode(), "timestamp": Float(), "message": Unicode()})
    texts = {name: Unicode() for name in ("type", "env_message", "status", "goal")}
    times = {name: Float() for name in ("execution_time", "elapsed_time")}
    said = {"chat_messages": spaces.Sequence(message), "history": Anything(list), "info": Anything(dict)}
    return spaces.Dict({**texts, **times, **said})
