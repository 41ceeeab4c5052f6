"""Ask an LLM about every candidate question: medical? answerable from the tables? of which type?

    .venv/bin/python utils/filter_with_llm.py outputs/candidates.jsonl --output outputs/filtered.jsonl
    .venv/bin/python utils/filter_with_llm.py outputs/filtered.jsonl --output outputs/confirmed.jsonl --strict

In: JSONL rows with `id` and `question` (from utils/chat_session_filter.py). Out: rows that are
medical and answerable, with `task_type` and `verdict` {reason, is_medical, answerable, task_type,
model}. OUT.dropped.jsonl has the others. Other columns pass through. The LLM is TEACHER_MODEL.
--strict is a second look (also utils/filter_again.py): in doubt it drops.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, Field

from common.toml import table_beside
from sql_agent.curation.llm_filter import LLMFilter, Row, digest, run_filter
from sql_agent.tables import TABLES

LONGEST_QUESTION = 2_000  # characters shown to the LLM
_TEXTS = table_beside(__file__)
TYPES: dict[str, str] = _TEXTS["types"]
# Columns that questions are never about
WORKING_COLUMNS = {"id", "med_name_initial", "created_at", "create_at", "update_at", "source"}


class Verdict(BaseModel):
    """An LLM's judgement of a question. The reason comes first, so that it is written first."""

    reason: str = Field(description="一两句话的理由")
    is_medical: bool
    answerable: bool
    task_type: Literal[*TYPES]  # type: ignore[valid-type]


def instructions(rules: str) -> str:
    tables = ""
    for table, columns in TABLES.items():
        asked = [
            f"{label}（{name}）" for name, label in columns.items() if name not in WORKING_COLUMNS
        ]
        tables += f"{table}：{'、'.join(asked)}\n"
    types = "".join(f"- {name}：{meaning}\n" for name, meaning in TYPES.items())
    parts = {"tables": tables.rstrip(), "types": types.rstrip(), "rules": rules}
    return str(_TEXTS["task"].format(**parts))


FIRST = instructions("")
STRICT = instructions(_TEXTS["strict_rules"])


def screening_messages(question: str, system: str) -> list[dict[str, str]]:
    # "<" is escaped, so that a user's text holds no chat token
    asked = json.dumps({"问题": question[:LONGEST_QUESTION]}, ensure_ascii=False)
    text = asked.replace("<", "\\u003c")
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


class Screening(LLMFilter):
    program = "filter_with_llm"
    switches: Mapping[str, str] = {"--strict": "look again, with a stricter prompt"}

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.system = STRICT if options.strict else FIRST
        schema = str(sorted(Verdict.model_json_schema().items()))
        self.depends = {"prompt": digest(self.system + schema)[:16]}

    async def ask(self, row: Row) -> Row:
        verdict = await self.client.ask(screening_messages(row["question"], self.system), Verdict)
        return verdict.model_dump()

    def judge(self, row: Row, result: Row) -> tuple[Row, bool]:
        verdict = result | {"model": self.client.model}
        kind = result["task_type"]
        kept = result["is_medical"] and result["answerable"] and kind != "unanswerable"
        return row | {"task_type": kind, "verdict": verdict}, kept


def main(argv: Sequence[str] | None = None) -> int:
    return run_filter(Screening, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
