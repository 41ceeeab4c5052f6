"""The words the doctor reads: those of prompts.toml beside this file, or of a file given with --prompts.

prompts = load_prompts()
prompts.opening("我肚子疼。", turns=6)      # [{"role": "system", ...}, {"role": "user", ...}]
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from consultation_agent.protocol import PROBLEMS
from episodes.agent import AgentError, Message

OWN = Path(__file__).with_suffix(".toml")
ANSWERED = tuple(name for name in PROBLEMS if name != "too_late")  # after that nothing is said


@dataclass(frozen=True)
class Prompts:
    """Texts with the fields that the head of prompts.toml explains; problems: what is said to a malformed reply."""

    version: str
    system: str
    first: str
    turn: str
    malformed: str
    last: str
    problems: dict[str, str]

    @property
    def fingerprint(self) -> str:
        """The version, and a hash that no other words have."""
        return f"{self.version} {hashlib.sha256(repr(self).encode()).hexdigest()[:8]}"

    def opening(self, complaint: str, turns: int) -> list[Message]:
        """The messages an episode begins with."""
        first = self._with_last(self.first.format(complaint=complaint, text="", turn=1, turns=turns), 1, turns)
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": first}]

    def said(self, text: str, turn: int, turns: int) -> str:
        """The patient's words, before the doctor's reply number `turn` of `turns`."""
        return self._with_last(self.turn.format(text=text, turn=turn, turns=turns, complaint=""), turn, turns)

    def wrong(self, problem: str, turn: int, turns: int) -> str:
        """What a malformed reply is answered with."""
        words = self.malformed.format(text=self.problems[problem], turn=turn, turns=turns, complaint="")
        return self._with_last(words, turn, turns)

    def _with_last(self, words: str, turn: int, turns: int) -> str:
        return f"{words}\n{self.last}" if turn >= turns else words


def load_prompts(path: Path = OWN) -> Prompts:
    """The prompts of a file; what it leaves out is as in prompts.toml.

    Raises AgentError: not readable, a key unknown, or a text with fields that there are not.
    """
    try:
        own, given = (tomllib.loads(file.read_text(encoding="utf-8")) for file in (OWN, path))
        problems = {**own["problems"], **given.pop("problems", {})}
        prompts = Prompts(**{**own, **given, "problems": problems})
        _check(prompts)
        return prompts
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        keys = ", ".join(field.name for field in fields(Prompts))
        raise AgentError(
            f"--prompts {path}: {type(error).__name__}: {error}; expected a TOML file with some of {keys}, and in "
            "their texts no other fields than {complaint}, {text}, {turn} and {turns}"
        ) from None


def _check(prompts: Prompts) -> None:
    if strange := {*prompts.problems} - {*ANSWERED}:
        raise ValueError(f"problems are {', '.join(ANSWERED)}, not {', '.join(strange)}")
    if wrong := [name for name in ("version", "system", "last") if not isinstance(getattr(prompts, name), str)]:
        raise ValueError(f"{wrong[0]} is no text")
    prompts.opening("", 2)
    prompts.said("", 1, 2)
    for problem in ANSWERED:
        prompts.wrong(problem, 1, 2)
