"""The prompts of the LLM filter, from `prompts.toml`.

FIRST is filter_with_llm's, STRICT that of its --strict.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from sql_agent.tables import TABLES

LONGEST_QUESTION = 2_000  # characters shown to the LLM
_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TYPES: dict[str, str] = _TEXTS["types"]
# Columns that questions are never about
WORKING_COLUMNS = {"id", "med_name_initial", "created_at", "create_at", "update_at", "source"}


class Verdict(BaseModel):
    """An LLM's judgement of a question. The reason comes first, so that it is written first."""

    reason: str = Field(description="一两句话的理由")
    is_medical: bool
    answerable: bool
    task_type: Literal[*TYPES]  # type: ignore[valid-type]

    @property
    def keeps(self) -> bool:
        return self.is_medical and self.answerable and self.task_type != "unanswerable"


def _screening(rules: str) -> str:
    tables = ""
    for table, columns in TABLES.items():
        asked = [
            f"{label}（{name}）" for name, label in columns.items() if name not in WORKING_COLUMNS
        ]
        tables += f"{table}：{'、'.join(asked)}\n"
    types = "".join(f"- {name}：{meaning}\n" for name, meaning in TYPES.items())
    parts = {"tables": tables.rstrip(), "types": types.rstrip(), "rules": rules}
    return str(_TEXTS["task"].format(**parts))


FIRST = _screening("")
STRICT = _screening(_TEXTS["strict_rules"])


def screening_messages(question: str, instructions: str) -> list[dict[str, str]]:
    # "<" is escaped, so that a user's text holds no chat token
    asked = json.dumps({"问题": question[:LONGEST_QUESTION]}, ensure_ascii=False)
    text = asked.replace("<", "\\u003c")
    return [{"role": "system", "content": instructions}, {"role": "user", "content": text}]


def digest(text: str) -> str:
    """Return a short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]
