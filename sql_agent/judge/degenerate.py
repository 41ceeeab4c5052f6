"""Answers that deserve no judge: empty, signs only, the question repeated, a whole row dumped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from scoring.case import Case
from scoring.text import SEPARATOR, words_only
from sql_agent.judge.canonical import canonical
from sql_agent.judge.heads import YES_OR_NO
from sql_agent.judge.pieces import COPULA, SIGN

LONGEST_BY_CHANCE = 4  # characters of a cell that an answer may hold by chance
# An answer with one repeats the choice that was asked
CHOICE = re.compile(r"还是|或者|\bor\b", re.I)
COPULA_BEFORE = re.compile(f"^(?:{COPULA})")
FEWEST_COPIED, MOST_COPIED = 3, 0.6  # other cells of a row that make a dump, and their share


def is_degenerate(case: Case) -> bool:
    """Return whether the answer scores 0 without a judge.

    A copied row is seen only if `case.context` has that row.
    """
    answer = _words(case.answer)
    asked = _words(case.question)
    signed = SIGN.search(case.answer)
    if not (answer or signed) or _dumps_a_row(case, answer):
        return True
    if signed or (answer not in asked and answer.replace(asked, "")) or _is_a_side(answer, asked):
        return False
    parts = (part for text in _gold_texts(case) for part in SEPARATOR.split(canonical(text)))
    gold = {*map(_words, _gold_texts(case)), *map(words_only, parts)} - {""}
    chosen = answer != asked and not CHOICE.search(case.answer) and answer.endswith(tuple(gold))
    return not chosen and gold.isdisjoint({answer, COPULA_BEFORE.sub("", answer) or answer})


def _is_a_side(answer: str, asked: str) -> bool:
    """Return whether the answer is what the question asks: 没有过敏史 or 有过敏史 of 有没有过敏史."""
    sides = (found.start() + side for found in YES_OR_NO.finditer(asked) for side in (1, 2))
    return any(asked.startswith(answer, side) for side in sides)


def _words(text: str) -> str:
    return words_only(canonical(text))


def _gold_texts(case: Case) -> list[str]:
    """Return the reference, the gold cells and the quotes."""
    gold = case.gold or {}
    rows = (gold.get("structured_gt") or {}).get("rows") or []
    quotes = [item["quote"] for item in gold.get("evidence") or []]
    return [case.reference, *(str(cell) for row in rows for cell in row), *quotes]


def _dumps_a_row(case: Case, answer: str) -> bool:
    """Return whether the answer copies most of a row's cells, apart from gold ones and those so
    short that they occur by chance.
    """
    shown = _context_rows(case.context)
    known = "\n".join(map(_words, _gold_texts(case)))
    rows = [
        [cell for cell in set(row) if len(cell) > LONGEST_BY_CHANCE and cell not in known]
        for row in shown
    ]
    copied = [(sum(cell in answer for cell in row), len(row)) for row in rows]
    return any(count >= FEWEST_COPIED and count >= MOST_COPIED * among for count, among in copied)


def _context_rows(context: Iterable[str]) -> list[list[str]]:
    """Return the text cells of the tool results' rows, as words; texts that are not the tool's JSON
    are skipped.
    """
    rows: list[list[str]] = []
    for text in context:
        try:
            result: Any = json.loads(text)
        except (ValueError, RecursionError):
            continue
        found = result.get("rows") if isinstance(result, dict) else None
        for row in found if isinstance(found, list) else []:
            cells = row if isinstance(row, list) else []
            rows.append([_words(cell) for cell in cells if isinstance(cell, str)])
    return rows
