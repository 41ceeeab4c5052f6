"""Answers that deserve no judge: empty, the question repeated, signs only, a whole row dumped, many guesses at once."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from scoring.case import Case
from scoring.reference.gold import known_text
from scoring.reference.text import RE, amounts, canonical, closeness, normalise, words_only

MOST_GUESSES = 4  # values nobody knows, for one unit or behind one "perhaps"
FEWEST_COPIED, MOST_COPIED = 3, 0.6  # other cells of a row that make a dump, and their share of its cells


def is_degenerate(case: Case) -> bool:
    """Whether the answer scores 0 without a judge. A dump is only seen when `case.context` has the row."""
    return not words_only(without_question(case)) or _dumps_a_row(case) or _guesses(case)


def without_question(case: Case) -> str:
    """The answer without copies of the question in its lines; those lines are normalised."""
    question = re.sub(r"[?？。.!！]+$", "", normalise(case.question))
    if not question:
        return case.answer
    lines = [(line, normalise(RE.list_mark.sub("", line))) for line in case.answer.splitlines()]
    answer = "\n".join(short.replace(question, "\n") if question in short else line for line, short in lines)
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
    for row in context_rows(case.context):
        others = {cell for cell in row if len(cell) >= 5 and cell not in known}
        copied = sum(cell in answer for cell in others)
        if copied >= FEWEST_COPIED and copied >= MOST_COPIED * len(others):
            return True
    return False


def _guesses(case: Case) -> bool:
    """Whether the answer offers more values than one question can have, none of them known."""
    if not case.reference and not case.gold:
        return False
    known, answer = known_text(case), canonical(case.answer)
    strange = Counter(unit for _, unit in amounts(answer) - amounts(known) if unit)
    sentences = RE.sentence.split(answer)
    return max(strange.values(), default=0) > MOST_GUESSES or any(_alternatives(one, known) for one in sentences)


def _alternatives(sentence: str, known: str) -> bool:
    """Whether a sentence with "perhaps" lists more than MOST_GUESSES things that known text has not."""
    if not RE.guess.search(sentence):
        return False
    options = {words_only(option) for option in RE.alternative.split(RE.guess.sub("、", sentence))}
    strange = [option for option in options if len(option) > 1 and closeness(option, words_only(known)) < 0.4]
    return len(strange) > MOST_GUESSES
