"""Sixty questions, and a stand-in LLM's judgement of them that can be foretold."""

import json
import re
from pathlib import Path
from typing import Any

from common.jsonl import read_jsonl
from sql_agent.curation.filter_with_llm import STRICT

QUESTIONS = [f"药品{number:03d}怎么保存？" for number in range(60)]


def question_of(body: dict[str, Any]) -> str:
    """The question of a request."""
    return json.loads(body["messages"][1]["content"])["问题"]


def number_of(question: str) -> int:
    """The number of the drug in it."""
    return int(re.findall(r"\d+", question)[0])


def judge(body: dict[str, Any]) -> str:
    """Every third question is not medical, every fifth to the strict prompt; tens are a count."""
    number = number_of(question_of(body))
    strict = body["messages"][0]["content"] == STRICT
    verdict = {
        "reason": f"第{number}个",
        "is_medical": number % 3 != 0,
        "answerable": not (strict and number % 5 == 0),
    }
    return json.dumps(
        verdict | {"task_type": "count_filter" if strict and number % 10 == 1 else "drug_field"}
    )


def rows_of(file: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file."""
    return [row for _, row in read_jsonl(file)]


def ids_of(file: Path) -> list[str]:
    """Their ids."""
    return [row["id"] for row in rows_of(file)]
