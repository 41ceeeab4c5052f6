"""What pages say of an agent: its title, what it does, and what its names are called in Chinese.

    words_of(folder).title["en"]        # folder: the agent's, which may have a words.toml

The served agent's page opens with them, and a report in Chinese calls task types and numbers so.
docs/agents.md has the form of the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FILE = "words.toml"


@dataclass(frozen=True)
class Words:
    """language: the one the agent speaks, "en" or "zh". title, about: by language. chinese: Chinese
    names of task types, terms and facts, by their own names. meaning: what the columns of its table
    say, by heading and language.
    """

    language: str = "en"
    title: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    chinese: Mapping[str, str] = field(default_factory=dict)
    meaning: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def words_of(folder: Path) -> Words:
    """Return the words of the agent in this folder; empty ones where it has no file."""
    path = folder / FILE
    return Words(**tomllib.loads(path.read_text(encoding="utf-8"))) if path.is_file() else Words()
