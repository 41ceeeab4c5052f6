"""The texts that a policy reads in an episode without tools: prompts.toml, or --prompts.

Fields: {complaint} (how the case begins), {text} (the partner's words), {turn}, {turns}.
"""

import hashlib
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from episodes.episode import AgentError, Message


@dataclass(frozen=True)
class Prompts:
    """Texts with these fields. last: for the last turn. problems: answers to malformed replies."""

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
        first = self._filled(self.first, 1, turns, complaint=complaint)
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": first}]

    def said(self, text: str, turn: int, turns: int) -> str:
        """Return the message with the partner's words that comes before reply `turn` of `turns`."""
        return self._filled(self.turn, turn, turns, text=text)

    def wrong(self, problem: str, turn: int, turns: int) -> str:
        """Return the message that answers a malformed reply."""
        return self._filled(self.malformed, turn, turns, text=self.problems[problem])

    def _filled(
        self, words: str, turn: int, turns: int, *, complaint: str = "", text: str = ""
    ) -> str:
        filled = words.format(complaint=complaint, text=text, turn=turn, turns=turns)
        return f"{filled}\n{self.last}" if turn >= turns else filled


def load_prompts(own: Path, path: str | Path | None = None) -> Prompts:
    """Return the prompts of the file at `path`, with the agent's own where it leaves some out.
    Raises AgentError: not readable, an unknown key, or a text with unknown fields.
    """
    try:
        ours = tomllib.loads(own.read_text(encoding="utf-8"))
        given = tomllib.loads(Path(path or own).read_text(encoding="utf-8"))
        answered = list(ours["problems"])
        problems = {**ours["problems"], **given.pop("problems", {})}
        texts = {**ours, **given, "problems": problems}
        prompts = Prompts(**texts)
        if strange := {*problems} - {*answered}:
            raise ValueError(f"problems are {', '.join(answered)}, not {', '.join(strange)}")
        for name in ("version", "system", "last"):
            if not isinstance(getattr(prompts, name), str):
                raise ValueError(f"{name} is no text")
        # Filling a text fails at unknown fields
        prompts.opening("", 2)
        prompts.said("", 1, 2)
        for problem in answered:
            prompts.wrong(problem, 1, 2)
        return prompts
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        keys = ", ".join(field.name for field in fields(Prompts))
        raise AgentError(
            f"--prompts {path or own}: {type(error).__name__}: {error}; expected "
            f"a TOML file with some of {keys}, and in their texts no "
            "other fields than {complaint}, {text}, {turn} and {turns}"
        ) from None
