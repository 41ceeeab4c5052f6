"""What pages say of an agent, by language (docs/agents.md has the form of words.toml)."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FILE = "words.toml"


@dataclass(frozen=True)
class Words:
    """language: the agent's, "en" or "zh". chinese: names by English names. meaning: of columns."""

    language: str = "en"
    title: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    chinese: Mapping[str, str] = field(default_factory=dict)
    meaning: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def words_of(folder: Path) -> Words:
    """Return the words of the agent in this folder, empty ones where it has no file."""
    path = folder / FILE
    return Words(**tomllib.loads(path.read_text(encoding="utf-8"))) if path.is_file() else Words()
