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
    return any(
        _same_rows(_turned(rows, order), wanted, bool(gold.get("ordered"))) for order in orders
    )


def _turned(rows: Sequence[Sequence[Cell]], order: Sequence[int]) -> list[list[Cell]]:
    return [[row[column] for column in order] for row in rows]


def _same_rows(rows: list[list[Cell]], wanted: list[list[Any]], ordered: bool) -> bool:
    left = list(wanted)
    for row in rows:
        candidates = left[:1] if ordered else left
        match = next(
            (
                want
                for want in candidates
                if len(row) == len(want) and all(map(_same_cell, row, want))
            ),
            None,
        )
        if match is None:
            return False
        left.remove(match)
    return True


def _same_cell(cell: Cell, want: Any) -> bool:
    shown = _plain(cell.value)
    text = _plain(want)
    beginning = shown.removesuffix(CUT).strip()
    return shown == text or bool(cell.cut and beginning and text.startswith(beginning))


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
    shown = [_cell_words(cell) for cell in cells]
    found = [quote for quote in wanted if any(_holds(cell, quote) for cell in shown)]
    return len(found) / len(wanted) if wanted else 0.0


def _cell_words(cell: Cell) -> tuple[str, bool]:
    return words_only(cell.value), cell.cut


def _holds(cell: tuple[str, bool], quote: str) -> bool:
    words, was_cut = cell
    return bool(quote) and (quote in words or (was_cut and bool(words) and quote.startswith(words)))


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
    return sum(
        (number, unit) in there or (not unit and number in values) for number, unit in said
    ) / len(said)


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
