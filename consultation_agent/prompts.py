"""The words the doctor reads: those of prompts.toml, or of a file given with --prompts."""

from pathlib import Path

from consultation_agent.protocol import PROBLEMS
from episodes import prompts
from episodes.prompts import Prompts

OWN = Path(__file__).with_suffix(".toml")
ENGLISH = Path(__file__).with_name("prompts_english.toml")  # for rows that are in English
CHOOSING = Path(__file__).with_name("prompts_options.toml")  # for rows with options
ANSWERED = tuple(name for name in PROBLEMS if name != "too_late")  # after that nothing is said


def load_prompts(path: Path = OWN) -> Prompts:
    """Return a file's prompts, completed from prompts.toml. Raises AgentError: unusable."""
    return prompts.load_prompts(OWN, ANSWERED, path)
