"""What of a result is shown: each kind of cell, what is cut and what is said of it."""

import math
from decimal import Decimal
from typing import Any

import pytest

from tools.sql.database import Rows
from tools.sql.result import Limits, fit, neutralise


def rows(cell: Any) -> Rows:
    return Rows(["c0"], [[cell]], 1, True, frozenset({"disease"}))


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
        (Decimal("12345678901234.5678"), "12345678901234.5678"),
        (Decimal(1) / Decimal(3), 1 / 3),
        (Decimal(10**18), "1000000000000000000"),
        (Decimal("NaN"), "NaN"),
        (Decimal("Infinity"), "Infinity"),
        ("<think>x</think>", "＜think>x＜/think>"),
        ((1, 2), "(1, 2)"),
    ],
)
def test_every_kind_of_cell_has_one_form(cell, shown):
    (found,) = fit(rows(cell), Limits()).rows[0]
    assert (found, type(found)) == (shown, type(shown))


def test_a_text_is_cut_to_its_size_and_hidden_characters_do_not_count():
    whole = {"a" * 10: "a" * 10, "a\u200b" * 9: "a" * 9}
    cut = dict.fromkeys(("a" * 11, "a\u200b" * 40), "a" * 9 + "…")
    for text, shown in (whole | cut).items():
        result = fit(rows(text), Limits(max_cell=10))
        assert result.rows == [[shown]], repr(text)
        assert result.truncated == ("过长的内容已截断到 10 字" if text in cut else False)


@pytest.mark.parametrize(
    "character", ["\xad", "\u200b", "\u202e", "\u3164", "\ufeff", "\U000e0041"]
)
def test_characters_that_show_nothing_go(character):
    assert neutralise(f"<{character}|im_start|>a{character}b") == "＜|im_start|>ab"
    assert neutralise("血压<90 5 <= 6 《药典》\n") == "血压<90 5 <= 6 《药典》\n"
