"""What of a result is shown: each kind of cell, what is cut and what is said of it, to the
character.

Keeps of docs/safety.md, "Layers": a bounded text, and a note wherever something is
left out.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from tools.sql.database import Rows
from tools.sql.result import SMALLEST_CELL, Limits, failure, fit, neutralise


def rows(*found: list[Any], count: int | None = None, exact: bool = True, columns: int = 1) -> Rows:
    names = [f"c{number}" for number in range(columns)]
    return Rows(
        names, list(found), len(found) if count is None else count, exact, frozenset({"disease"})
    )


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (b"abc", "（二进制数据，3 字节）"),
        (Decimal("2.50"), 2.5),
        (Decimal("2.00"), 2),
        (Decimal(10**18), "1000000000000000000"),
        (Decimal("NaN"), "NaN"),
        (Decimal("Infinity"), "Infinity"),
        ("<think>x</think>", "＜think>x＜/think>"),
        ((1, 2), "(1, 2)"),
    ],
)
def test_every_kind_of_cell_has_one_form(cell: Any, shown: Any) -> None:
    (found,) = fit(rows([cell]), Limits()).rows[0]
    assert (found, type(found)) == (shown, type(shown))


def test_a_text_is_cut_to_its_size_and_hidden_characters_do_not_count() -> None:
    limits = Limits(max_cell=10)
    texts = {
        "a" * 10: "a" * 10,
        "a" * 11: "a" * 9 + "…",
        "a\u200b" * 9: "a" * 9,
        "a\u200b" * 40: "a" * 9 + "…",
    }
    for text, shown in texts.items():
        result = fit(rows([text]), limits)
        assert result.rows == [[shown]], repr(text)
        assert result.truncated == (
            "过长的内容已截断到 10 字" if len(shown) == 10 and shown[-1] == "…" else False
        )


def test_what_is_left_out_is_said_and_what_is_not_known_too() -> None:
    assert fit(rows([1], [2]), Limits()).truncated is False
    assert fit(rows([1], [2], count=7), Limits()).truncated == "共 7 行，只显示前 2 行"
    assert fit(rows([1], count=7, exact=False), Limits()).truncated == "超过 7 行，只显示前 1 行"
    both = fit(rows(["a" * 20], count=7), Limits(max_cell=10))
    assert both.truncated == "共 7 行，只显示前 1 行；过长的内容已截断到 10 字"
    assert (both.count, both.tables_read, both.columns) == (7, {"disease"}, ["c0"])


def test_cells_shrink_by_half_before_the_last_row_is_given_up() -> None:
    wide = rows(["药" * 400] * 10, columns=10)
    sizes = {}
    for limit in (4_500, 2_400, 1_400, 800, 400, 290):
        result = fit(wide, Limits(max_cell=400, max_chars=limit))
        assert len(result.to_json()) <= limit
        sizes[limit] = len(result.rows[0][0]) if result.rows else result.truncated
    assert sizes == {4_500: 400, 2_400: 200, 1_400: 100, 800: 50, 400: 12, 290: SMALLEST_CELL}
    nothing = fit(rows(["药" * 400] * 99, columns=99), Limits(max_chars=1_000))
    assert (nothing.rows, nothing.columns, nothing.count) == ([], [], 1)
    assert nothing.truncated == "结果太宽，共 1 行，无法显示，请只选需要的列"
    assert nothing.tables_read == {"disease"}


@pytest.mark.parametrize(
    "character", ["\xad", "\u200b", "\u202e", "\u3164", "\ufeff", "\U000e0041"]
)
def test_characters_that_show_nothing_go(character: str) -> None:
    assert neutralise(f"<{character}|im_start|>a{character}b") == "＜|im_start|>ab"
    assert neutralise("血压<90 5 <= 6 《药典》\n") == "血压<90 5 <= 6 《药典》\n"


def test_a_reason_is_short_and_harmless() -> None:
    result = failure("<tool>" + "x" * 400)
    assert (len(result.error or ""), (result.error or "")[:6], (result.error or "")[-1]) == (
        300,
        "＜tool>",
        "…",
    )
    assert (result.ok, result.columns, result.rows, result.count) == (False, [], [], 0)
