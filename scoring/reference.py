"""The offline judge: compares the answer with what is known to be right. Deterministic, no network, well under 1 ms.

The score is coverage x precision x agreement x brevity:

- coverage: the share of the gold text found in the answer. Gold is the result the gold SQL returned; without one the
  evidence quotes; without them the reference answer. Without that either, the case is not scored.
- precision: other cells of the agent's query results that the answer copies count against it: no dumping.
- agreement: numbers in the answer that are nowhere in gold, question or reference count against gold's own numbers.
- brevity: an answer more than about twice as long as needed is paid in proportion.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from scoring.case import Case, Verdict
from scoring.text import closeness, fragments, normalise, numbers, words_only

SHORTEST_FOREIGN_CELL = 4  # characters; shorter cells occur in answers by chance
SPARE_CHARACTERS = 30  # an answer may say a little more than gold, however short that is


class ReferenceJudge:
    """Scores by comparison with gold values, evidence or the reference answer."""

    name = "reference"

    async def judge(self, case: Case) -> Verdict:
        """The verdict; not scored, with the cause "no_reference", when the case has nothing to compare with."""
        wanted = _wanted(case)
        if not wanted:
            return Verdict(None, cause="no_reference")
        if is_degenerate(case):
            return Verdict(0.0, {"degenerate": 1.0})
        answer = words_only(_without_question(case))
        known = words_only("\n".join([*wanted, case.reference, case.question]))
        parts = {
            "coverage": _coverage(wanted, answer, case.question),
            "precision": _precision(case.context, answer, known),
            "agreement": _agreement(wanted, answer, case),
            "brevity": _brevity(wanted, case),
        }
        score = 1.0
        for part in parts.values():
            score *= part
        return Verdict(score, parts)


def is_degenerate(case: Case) -> bool:
    """Whether the answer says nothing: empty, punctuation only, or no more than the question."""
    return not words_only(_without_question(case))


def _without_question(case: Case) -> str:
    answer, question = normalise(case.answer), normalise(case.question)
    answer = answer.replace(question, "\n") if question else answer
    return "" if words_only(answer) == words_only(question) else answer


def _wanted(case: Case) -> list[str]:
    """The gold texts to look for, from the best source the case has."""
    gold = case.gold or {}
    cells = [str(cell) for row in (gold.get("structured_gt") or {}).get("rows", []) for cell in row if cell is not None]
    quotes = [str(item["quote"]) for item in gold.get("evidence") or [] if item.get("quote")]
    for texts in (cells, quotes, [case.reference]):
        found = [text for text in texts if words_only(text)]
        if found:
            return found
    return []


def _coverage(wanted: list[str], answer: str, question: str) -> float:
    """The mean over the gold texts of the share of each that the answer has, fragments weighted by length."""
    asked = words_only(question)
    shares = []
    for text in wanted:
        parts = fragments(text)
        # What the question says already is no answer, unless gold says nothing else.
        parts = [part for part in parts if part not in asked] or parts
        length = sum(map(len, parts))
        shares.append(sum(len(part) * closeness(part, answer) for part in parts) / length)
    return sum(shares) / len(shares)


def _precision(context: Iterable[str], answer: str, known: str) -> float:
    """Length of known text against length of foreign cells in the answer; 1 without any."""
    foreign = {
        cell for cell in _cells(context) if len(cell) >= SHORTEST_FOREIGN_CELL and cell not in known and cell in answer
    }
    if not foreign:
        return 1.0
    copied = sum(map(len, foreign))
    return max(0, len(answer) - copied) / len(answer)


def _cells(context: Iterable[str]) -> set[str]:
    """Every text cell of the tool results, as words only; results that are not the tool's JSON have none."""
    cells: set[str] = set()
    for text in context:
        try:
            result: Any = json.loads(text)
        except ValueError:
            continue
        rows = result.get("rows", []) if isinstance(result, dict) else []
        cells |= {words_only(cell) for row in rows for cell in row if isinstance(cell, str)}
    return cells


def _agreement(wanted: list[str], answer: str, case: Case) -> float:
    gold = numbers("\n".join(wanted))
    strange = numbers(answer) - gold - numbers(case.question) - numbers(case.reference)
    return len(gold) / (len(gold) + len(strange)) if gold else 1.0


def _brevity(wanted: list[str], case: Case) -> float:
    needed = max(len(words_only(case.reference)), sum(len(words_only(text)) for text in wanted))
    allowed = 2 * needed + len(words_only(case.question)) + SPARE_CHARACTERS
    return min(1.0, allowed / max(1, len(normalise(case.answer))))
