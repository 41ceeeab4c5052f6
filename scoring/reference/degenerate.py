"""Answers that deserve no judge: empty, the question repeated, signs only, a whole row dumped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from scoring.case import Case
from scoring.reference.gold import known_text
from scoring.reference.text import RE, canonical, normalise, words_only

FEWEST_COPIED, MOST_COPIED = (
    3,
    0.6,
)  # other cells of a row that make a dump, and their share of its cells


def is_degenerate(case: Case) -> bool:
    """Whether the answer scores 0 without a judge. A dump is only seen when `case.context` has the row."""
    return not words_only(without_question(case)) or _is_of_the_question(case) or _dumps_a_row(case)


def _is_of_the_question(case: Case) -> bool:
    """Whether the answer is a piece of the question, such as the name, and not what is wanted; a choice may be."""
    answer, gold = (
        words_only(canonical(case.answer)),
        known_text(replace(case, question="", reference="")),
    )
    in_question = answer in words_only(canonical(case.question)) and not RE.choice.search(
        case.question
    )
    return in_question and answer not in map(words_only, gold.splitlines())


def without_question(case: Case) -> str:
    """The answer without copies of the question in its lines; those lines are normalised."""
    question = re.sub(r"[?？。.!！]+$", "", normalise(case.question))
    if not question:
        return case.answer
    lines = [(line, normalise(RE.list_mark.sub("", line))) for line in case.answer.splitlines()]
    answer = "\n".join(
        short.replace(question, "\n") if question in short else line for line, short in lines
    )
    return "" if words_only(answer) == words_only(question) else answer


def context_rows(context: Iterable[str]) -> list[list[str]]:
    """The text cells of the tool results' rows, as words of the canonical text; none of what is not the tool's JSON."""
    rows: list[list[str]] = []
    for text in context:
        try:
            result: Any = json.loads(text)
        except (ValueError, RecursionError):
            continue
        found = result.get("rows") if isinstance(result, dict) else None
        for row in found if isinstance(found, list) else []:
            cells = row if isinstance(row, list) else []
            rows.append([words_only(canonical(cell)) for cell in cells if isinstance(cell, str)])
    return rows


def _dumps_a_row(case: Case) -> bool:
    """Whether most of a row's other cells that do not occur by chance are copied."""
    answer, known = words_only(canonical(case.answer)), words_only(known_text(case))
    rows = [
        [cell for cell in set(row) if len(cell) >= 5 and cell not in known]
        for row in context_rows(case.context)
    ]
    copied = [(sum(cell in answer for cell in row), len(row)) for row in rows]
    return any(count >= FEWEST_COPIED and count >= MOST_COPIED * among for count, among in copied)
