"""The words the policy reads: those of prompts.toml, or of a file given with --prompts."""

from __future__ import annotations

from pathlib import Path

from diagnosis_agent.protocol import PROBLEMS
from episodes import prompts
from episodes.prompts import Prompts

OWN = Path(__file__).with_suffix(".toml")
ANSWERED = tuple(name for name in PROBLEMS if name != "too_late")  # after that nothing is said


def load_prompts(path: Path = OWN) -> Prompts:
    """Return a file's prompts, completed from prompts.toml. Raises AgentError: unusable."""
    return prompts.load_prompts(OWN, ANSWERED, path)
