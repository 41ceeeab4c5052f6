"""Checks answers and query results without a judge, for reward terms and metrics.

same_result(["a"], [["x"], ["y"]], {"columns": ["b"], "rows": [["y"], ["x"]]})     # True: order is not asked for
quantities("一次0.5克")                                                      # {(500.0, "毫克")}
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from scoring.text import words_only
from sql_agent.judge.fold import fold

CUT = "…"  # what ends a cell that the tool shortened
MOST_COLUMNS = 6  # results wider than this are compared in the order of their columns only
SHORTEST_CLAIM = 4  # characters. Shorter quoted words are emphasis, not citation

Row = Sequence[Any]

# Numbers of folded text with the unit or measure word behind them.
QUANTITY = re.compile(
    r"(\d+(?:\.\d+)?)(毫克|毫升|度|分钟|小时|天|个?月|年|岁|次|片|粒|丸|袋|支|瓶|包|滴|%)?"
)
QUOTED = re.compile(r"[“「『\"]([^“”「」『』\"]+)[”」』\"]")
REFERENCE = re.compile(r"https?://\S+|\[\d+(?:[,，\-]\d+)*\]|【\d+】|\bdoi:\S+", re.IGNORECASE)
MARKUP = re.compile(
    r"<\s*/?\s*(?:tool|think|function|\|)|```|^\s*(?:\{|\[\s*(?:[\[\]{\"']|[^\[\]]*,))|\{\s*[\"']|\"(?:sql|name|arguments)\"\s*:",
    re.IGNORECASE,
)


class Cell(NamedTuple):
    """A value of a result, and whether the tool cut it."""

    value: Any
    cut: bool = False


def same_result(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], gold: dict[str, Any]
) -> bool:
    """Return whether a result has gold's rows, each as often, in gold's order if it is "ordered".

    Columns may have other names and another order. A cut cell equals any text that begins with it.
    """
    wanted = [list(row) for row in gold.get("rows") or []]
    width = len(gold.get("columns") or []) or (len(wanted[0]) if wanted else len(columns))
    if len(rows) != len(wanted) or (rows and len(columns) != width):
        return False
    orders = permutations(range(width)) if 1 < width <= MOST_COLUMNS else [tuple(range(width))]
    for order in orders:
        turned = [[row[column] for column in order] for row in rows]
        if _same_rows(turned, wanted, bool(gold.get("ordered"))):
            return True
    return False


def _same_rows(rows: list[list[Cell]], wanted: list[list[Any]], ordered: bool) -> bool:
    left = list(wanted)
    for row in rows:
        same = [want for want in (left[:1] if ordered else left) if _is_same(row, want)]
        if not same:
            return False
        left.remove(same[0])
    return True


def _is_same(row: Sequence[Cell], wanted: Sequence[Any]) -> bool:
    for cell, want in zip(row, wanted, strict=False):
        shown = _plain(cell.value)
        text = _plain(want)
        beginning = shown.removesuffix(CUT).strip()
        if shown != text and not (cell.cut and beginning and text.startswith(beginning)):
            return False
    return len(row) == len(wanted)


def _plain(cell: Any) -> str:
    """Return a cell as comparable text: 3, 3.0 and "3" are equal, and so are null and ""."""
    if cell is None:
        return ""
    text = unicodedata.normalize("NFKC", str(cell)).strip().replace("...", CUT)
    try:
        if re.fullmatch(r"[+-]?\d+", text):
            return str(int(text))  # every digit of a long key counts
        return f"{float(text):.15g}" if not isinstance(cell, bool) else text
    except ValueError:
        return text


def evidence_found(quotes: Iterable[str], cells: Iterable[Cell]) -> float:
    """Return the share of the quotes that are in a returned cell, or 0 without quotes."""
    wanted = [words_only(quote) for quote in quotes]
    shown = [(words_only(cell.value), cell.cut) for cell in cells]
    found = 0
    for quote in filter(None, wanted):
        found += any(
            quote in words or (was_cut and bool(words) and quote.startswith(words))
            for words, was_cut in shown
        )
    return found / len(wanted) if wanted else 0.0


def quantities(text: str) -> set[tuple[float, str]]:
    """Return the text's numbers with comparable units, or "" for a number without a unit."""
    return {(float(number), unit) for number, unit in QUANTITY.findall(fold(text))}


def quantities_agree(answer: str, known: str, wanted: str) -> float:
    """Return the share of the answer's quantities that are also in `known` (rows and question).

    A number without a unit agrees with any unit. An answer without numbers agrees if `wanted` (the
    gold text) has none either.
    """
    said = quantities(answer)
    there = quantities(known)
    if not said:
        return float(not quantities(wanted))
    values = {number for number, _ in there}
    agreed = 0
    for number, unit in said:
        agreed += (number, unit) in there or (not unit and number in values)
    return agreed / len(said)


def claims_hold(answer: str, known: str) -> float:
    """Return the share of the answer's quotes and references in `known`, or 1 without any.

    Quotes, addresses and numbered references must be there word for word.
    """
    passages = [words_only(text) for text in QUOTED.findall(answer)]
    held = [text in words_only(known) for text in passages if len(text) >= SHORTEST_CLAIM]
    held += [text in known for text in REFERENCE.findall(answer)]
    return sum(held) / len(held) if held else 1.0


def is_plain(answer: str) -> bool:
    """Return whether the answer is prose, without tool calls, chat tokens, code fences and JSON."""
    return MARKUP.search(answer) is None
