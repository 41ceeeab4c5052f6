"""The text of a check of gold when two things differ: what was compared, cut to the part that shows
the difference.

difference(gold, columns, lines)       # gold SQL returns [["避光"]], structured_gt says [["密封"]]
shortfall(verdict, gold, row)          # lacks the gold value '密封' (scores 0.00, expected 1; facts 0.00)
"""

from __future__ import annotations

import json
from typing import Any

from scoring.judge import Verdict
from scoring.text import words_only
from sql_agent.intake.question_files import Row
from sql_agent.judge.closeness import closeness
from sql_agent.judge.fold import fragments

EXACT = 1 - 1e-9  # of a score, from which it counts as full
SHOWN = 60  # characters of a value in a message


def difference(gold: dict[str, Any], columns: list[str], lines: list[Any]) -> str:
    """Return what the gold SQL returns (`columns` and `lines`) and what structured_gt says, from
    shortly before the first difference.
    """
    if lines and not {name.lower() for name in gold["columns"]} <= {
        name.lower() for name in columns
    }:
        return (
            f"gold SQL returns the columns {short(str(columns))}, "
            f"structured_gt says {short(str(gold['columns']))}"
        )
    texts = [json.dumps(rows, ensure_ascii=False, default=str) for rows in (lines, gold["rows"])]
    apart = next((at for at, pair in enumerate(zip(*texts, strict=False)) if len({*pair}) > 1), 0)
    start = max(0, apart - SHOWN // 2)
    returned, said = (("…" if start else "") + short(text[start:]) for text in texts)
    return f"gold SQL returns {returned}, structured_gt says {said}"


def shortfall(verdict: Verdict, gold: dict[str, Any], row: Row) -> str:
    """Return why an answer does not earn the full score: the gold value it lacks, and the judge's
    terms that are below 1.
    """
    if verdict.score is None:
        return f"is not scored: {verdict.cause}"
    low = ", ".join(
        f"{name} {_below_1(value)}" for name, value in verdict.parts.items() if value < EXACT
    )
    reason = f"scores {_below_1(verdict.score)}, expected 1; {low or ', '.join(verdict.parts)}"
    piece = lacking(gold, row["question"], row["answer"]) if "facts" in low else ""
    return f"lacks the gold value {short(repr(piece))} ({reason})" if piece else reason


def _below_1(value: float) -> str:
    """Return a number below 1 with enough digits to show that it is."""
    return next(text for digits in range(2, 17) if float(text := f"{value:.{digits}f}") < 1)


def lacking(gold: dict[str, Any], question: str, answer: str) -> str:
    """Return the piece of gold of which the answer has least; "" if it has all of gold."""
    cells = [
        str(cell)
        for line in gold.get("structured_gt", {}).get("rows", [])
        for cell in line
        if cell is not None
    ]
    texts = cells or [item["quote"] for item in gold.get("evidence", [])]
    said = words_only(answer)
    asked = words_only(question)
    parts = [part for text in texts for part in fragments(text) if part not in asked]
    worst = min(parts, key=lambda part: closeness(part, said), default="")
    return worst if closeness(worst, said) < EXACT else ""


def short(text: str) -> str:
    """Return a text as a message shows it."""
    return text[:SHOWN] + "…" if len(text) > SHOWN else text
