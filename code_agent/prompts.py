"""The words that the policy reads, from prompts.toml."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from code_agent.actions import ACTIONS
from code_agent.task import CodeTask
from episodes.episode import Message


@dataclass(frozen=True)
class Prompts:
    """Texts with the fields that the head of prompts.toml explains."""

    version: str
    system: str
    first: str
    turn: str
    last: str
    last_oracle: str

    @property
    def fingerprint(self) -> str:
        """The version and a hash of the texts."""
        return f"{self.version} {hashlib.sha256(f'{self!r}{ACTIONS}'.encode()).hexdigest()[:8]}"

    def opening(
        self, task: CodeTask, overview: str, permitted: Sequence[str], steps: int
    ) -> list[Message]:
        """Return the messages that begin an episode."""
        system = self.system.format(actions="\n".join(map(described, permitted)), overview=overview)
        note = f"{task.note}\n" if task.note else ""
        first = self.first.format(note=note, question=task.question, step=1, steps=steps)
        user = self._with_last(first, 1, steps, "submit" in permitted)
        return [{"role": "system", "content": system.strip()}, {"role": "user", "content": user}]

    def said(self, text: str, step: int, steps: int, submits: bool) -> str:
        """Return an observation, before reply number `step` of `steps`."""
        return self._with_last(
            self.turn.format(text=text, step=step, steps=steps), step, steps, submits
        )

    def _with_last(self, words: str, step: int, steps: int, submits: bool) -> str:
        return f"{words}\n{self.last if submits else self.last_oracle}" if step >= steps else words


def described(name: str) -> str:
    """Return an action with its parameters on one line."""
    spec = ACTIONS[name]
    params = "; ".join(f"{param}: {meaning}" for param, meaning in spec["params"].items())
    return f"{name}: {spec['says']}. {params}."


@lru_cache
def load_prompts() -> Prompts:
    return Prompts(**tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")))
