"""Answers that deserve no judge: empty, the question repeated, signs only, a whole row dumped, many guesses at once."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from scoring.case import Case
from scoring.reference.text import RE, UNITS, canonical, closeness, normalise, words_only

MOST_GUESSES = 3  # values nobody knows, for one unit or behind one "perhaps"


def is_degenerate(case: Case) -> bool:
    """Whether the answer scores 0 without a judge. A dump is only seen when `case.context` has the row."""
    if not words_only(without_question(case)):
        return True
    return _dumps_a_row(case) or _guesses(case)


def without_question(case: Case) -> str:
    """The answer's lines, normalised, without copies of the question in them."""
    answer = "\n".join(map(normalise, RE.list_mark.sub("", case.answer).splitlines()))
    question = re.sub(r"[?？。.!！]+$", "", normalise(case.question))
    if not question:
        return answer
    answer = answer.replace(question, "\n")
    return "" if words_only(answer) == words_only(question) else answer


def known_text(case: Case) -> str:
    """Question, reference and gold as words only: what an answer may say without having copied or invented it."""
    gold = case.gold or {}
    cells = [str(cell) for row in (gold.get("structured_gt") or {}).get("rows") or [] for cell in row]
    quotes = [str(item.get("quote", "")) for item in gold.get("evidence") or []]
    return words_only(canonical("\n".join([case.question, case.reference, *cells, *quotes])))


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
    """Whether at least three, and 60 %, of a row's other cells that do not occur by chance are copied."""
    answer, known = words_only(canonical(case.answer)), known_text(case)
    for row in context_rows(case.context):
        others = {cell for cell in row if len(cell) >= 5 and cell not in known}
        copied = sum(cell in answer for cell in others)
        if copied >= 3 and copied >= 0.6 * len(others):
            return True
    return False


def _guesses(case: Case) -> bool:
    """Whether the answer offers more values than one question can have, none of them known."""
    if not case.reference and not case.gold:
        return False
    known, answer = known_text(case), canonical(case.answer)
    strange = {(number, unit) for number, unit in RE.quantity.findall(answer) if number + unit not in known}
    if max(Counter(UNITS[unit][0] for _, unit in strange).values(), default=0) > MOST_GUESSES:
        return True
    return any(_many_alternatives(sentence, known) for sentence in re.split(r"[。;！!\n]", answer))


def _many_alternatives(sentence: str, known: str) -> bool:
    if not RE.guess.search(sentence):
        return False
    options = {words_only(option) for option in RE.alternative.split(RE.guess.sub("、", sentence))}
    strange = [option for option in options if len(option) > 1 and closeness(option, known) < 0.4]
    return len(strange) > MOST_GUESSES
