"""The questions to an LLM about a real question, and its answers: medical? answerable from the
tables? of which type?

Two prompts: FIRST of utils/filter_with_llm.py, and STRICT of utils/filter_again.py. Both show the
tables' columns; the words are in `screening.toml`.

    ask = Screening(client, FIRST)
    Verdict(**await ask({"question": "阿莫西林怎么吃？"}))
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from common.llm import LLMClient
from sql_agent.curation.llm_pass import digest
from sql_agent.tables import TABLES

LONGEST_QUESTION = 2_000  # characters shown to the LLM

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
MEANINGS: dict[str, str] = _TEXTS["types"]
# Columns that questions are never about.
WORKING_COLUMNS = frozenset(
    ["id", "med_name_initial", "created_at", "create_at", "update_at", "source"]
)


class Verdict(BaseModel):
    """One LLM's judgement of one question; the reason comes first, so that the model writes it
    before it decides.
    """

    reason: str = Field(description="一两句话的理由")
    is_medical: bool
    answerable: bool
    task_type: Literal[*MEANINGS]  # type: ignore[valid-type]


FIELDS = ("is_medical", "answerable", "task_type")


def is_kept(verdict: Verdict) -> bool:
    """Return whether the question may enter a data set."""
    return verdict.is_medical and verdict.answerable and verdict.task_type != "unanswerable"


class Screening:
    """Asks an LLM about the question of a row; equal questions have the same `key`."""

    def __init__(self, client: LLMClient, instructions: str) -> None:
        self.client = client
        self.instructions = instructions
        schema = json.dumps(Verdict.model_json_schema(), sort_keys=True)
        self.depends: dict[str, Any] = {"prompt": digest(instructions + schema)[:16]}

    async def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a Verdict. Raises LLMError."""
        answer = await self.client.ask(build_messages(row["question"], self.instructions), Verdict)
        return answer.value.model_dump()

    def key(self, row: dict[str, Any]) -> str:
        """Return the key of what the verdict is about."""
        return digest(row["question"])


def build_messages(question: str, instructions: str) -> list[dict[str, str]]:
    """Return the prompt.

    The question is JSON with "<" escaped, so that it holds no chat token and cannot end its
    quotation.
    """
    text = json.dumps({"问题": question[:LONGEST_QUESTION]}, ensure_ascii=False).replace(
        "<", "\\u003c"
    )
    return [{"role": "system", "content": instructions}, {"role": "user", "content": text}]


def _instructions(rules: str) -> str:
    lines = []
    for table, columns in TABLES.items():
        asked = [
            f"{label}（{name}）" for name, label in columns.items() if name not in WORKING_COLUMNS
        ]
        lines.append(f"{table}：{'、'.join(asked)}")
    types = "\n".join(f"- {name}：{meaning}" for name, meaning in MEANINGS.items())
    return _TEXTS["task"].format(tables="\n".join(lines), types=types, rules=rules)


FIRST = _instructions("")
STRICT = _instructions(_TEXTS["strict_rules"])
