"""Checks answers and query results without a judge, for reward terms and metrics.

same_result(["a"], [["x"], ["y"]], {"columns": ["b"], "rows": [["y"], ["x"]]})     # True: order is not asked for
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from scoring.text import words_only

CUT = "…"  # what ends a cell that the tool shortened
MOST_COLUMNS = 6  # results wider than this are compared in the order of their columns only

Row = Sequence[Any]

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


def is_plain(answer: str) -> bool:
    """Return whether the answer is prose, without tool calls, chat tokens, code fences and JSON."""
    return MARKUP.search(answer) is None
