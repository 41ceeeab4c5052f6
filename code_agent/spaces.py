"""Spaces of texts for gymnasium: its own ones hold arrays, and texts of a few letters.

MedAgentSpace()          # what observations of `code_agent.env` look like
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


class AnyList(spaces.Space[list[Any]]):
    """Any list."""

    def __init__(self) -> None:
        super().__init__(shape=None, dtype=None)

    def sample(self, mask: Any = None, probability: Any = None) -> list[Any]:
        return []

    def contains(self, x: Any) -> bool:
        return isinstance(x, list)


class MedAgentSpace(spaces.Dict):
    """A dict with these keys; observations of some types have more (`status`, `execution_time`, `info`)."""

    def __init__(self) -> None:
        message = spaces.Dict({"role": Unicode(), "timestamp": Float(), "message": Unicode()})
        known = {"chat_messages": spaces.Sequence(message), "goal": Unicode(), "history": AnyList()}
        super().__init__({"type": Unicode(), "env_message": Unicode(), "elapsed_time": Float(), **known})

    def contains(self, x: Any) -> bool:
        return isinstance(x, dict) and all(key in x and x[key] in space for key, space in self.spaces.items())
