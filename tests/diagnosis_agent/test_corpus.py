"""Replies, orders, diagnoses and verdicts written by people who had not read what reads them: corpus/README.md.

The shares of orders and of kinds of diagnoses that are read as meant are held where they were measured; what must never
happen (the wrong examination, a wrong diagnosis paid, a refusal taken for a verdict) never does.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from data.conditions.table import load_tables
from diagnosis_agent.examinations import named, table_key
from diagnosis_agent.judge_words import Answers
from diagnosis_agent.protocol import Conclusion, Malformed, Order, read_reply
from scoring.diagnosis import names_it

CORPUS = Path(__file__).parent / "corpus"
Row = dict[str, Any]


def rows(name: str) -> list[Row]:
    files = (CORPUS / f"{name}.jsonl", CORPUS / f"{name}_sealed.jsonl")
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def plain(text: str) -> str:
    return re.sub(r"[\s*_`\"'“”\[\]<>.,;:。]", "", text.lower())


def same(wanted: Any, said: str) -> bool:
    texts = wanted if isinstance(wanted, list) else [wanted]
    return wanted is None or plain(said) in map(plain, texts)


def read_as_meant(row: Row) -> bool:
    said, expect = read_reply(row["reply"]), row["expect"]
    kind = {Order: "order", Conclusion: "final", Malformed: "malformed"}[type(said)]
    if expect["kind"] == "any":
        return kind != expect.get("never")
    parts = all(same(expect.get(part), getattr(said, part, "")) for part in ("diagnosis", "examination"))
    return kind == expect["kind"] and parts


def meant(row: Row) -> bool:
    wanted = row["expect"] if isinstance(row["expect"], list) else [row["expect"]]
    name = named(row["order"])
    return (name and table_key(name)) in [*wanted, *([None] if row["kind"] == "several" else [])]


def judged_right(row: Row) -> bool:
    condition = load_tables().conditions[row["gold"]]
    return names_it(row["answer"], (condition.en, condition.zh, *condition.aliases_en, *condition.aliases_zh))


def share(outcomes: Iterable[bool]) -> float:
    found = list(outcomes)
    return sum(found) / len(found)
