"""How episodes end, and why some have no score, for every agent (`outcomes.toml`).

A stop reason is the policy's doing and scored. A cause is the machine's and leaves no score.
"""

from collections.abc import Mapping

from common.language import is_chinese, said
from common.toml import table_beside

_LISTS: dict[str, dict[str, str]] = table_beside(__file__)
STOP_REASONS = _LISTS["stop_reasons"]
UNSCORED = _LISTS["unscored"]
CHINESE = _LISTS["chinese"]


def counted(numbers: Mapping[str, float], names: Mapping[str, str] = CHINESE) -> str:
    """Return counts or means, but for zeros, with their names for a person. names: in Chinese."""
    shown = names if is_chinese() else {}
    parts = []
    for name, value in numbers.items():
        if value:
            form = ".0f" if value == int(value) else ".3f"
            parts.append(f"{shown.get(name, name)} {value:{form}}")
    return said(", ").join(parts)


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
