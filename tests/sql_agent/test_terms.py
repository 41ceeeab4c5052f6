"""The arithmetic behind reward terms: result sets, evidence, manner."""

from typing import Any

import pytest

from sql_agent import terms
from sql_agent.terms import Cell
from tests.corpora import cases_of

GOLD = {"columns": ["med_name", "dosage"], "rows": [["甲片", "一次1片"], ["乙片", "一次2片"]]}


def same(rows: list[list[Any]], gold: dict[str, Any], cut: bool = False) -> bool:
    columns = [f"c{place}" for place in range(len(rows[0]) if rows else 2)]
    shown = [[Cell(value, cut) for value in row] for row in rows]
    return terms.same_result(columns, shown, gold)


@pytest.mark.parametrize(("rows", "is_same", "in_order"), cases_of(__file__, "result_sets"))
def test_result_sets(rows, is_same, in_order):
    assert same(rows, GOLD) is is_same
    assert same(rows, GOLD | {"ordered": True}) is in_order


@pytest.mark.parametrize(
    ("shown", "gold", "is_same"),
    [
        (3, 4, False),
        ("3", 3.0, True),
        (None, "", True),
        ("ＡＢ", "AB", True),
        ("甲…", "甲乙", False),
        (True, 1, False),
        (12345678901234567, 12345678901234568, False),  # one number, where they are read as floats
    ],
)
def test_cells(shown, gold, is_same):
    assert same([[shown]], {"columns": ["y"], "rows": [[gold]]}) is is_same


def test_an_empty_result_is_the_gold_of_an_unanswerable_question():
    assert same([], {"columns": ["dosage"], "rows": []})
    assert not same([["x"]], {"columns": ["dosage"], "rows": []})


def found(quotes: list[str], *cells: Cell) -> float:
    return terms.evidence_found(quotes, cells)


def test_evidence():
    quotes = ["密封，阴凉处保存", "一次1片"]
    assert found(quotes, Cell("密封, 阴凉处保存"), Cell("别的")) == 0.5
    assert found(quotes, Cell("密封，阴…", cut=True), Cell("一次1片，饭后")) == 1
    assert found(quotes, Cell("密封，阴…")) == found(quotes, Cell("…", cut=True)) == 0
    assert found(["存保处凉阴"], Cell("密封，阴凉处保存")) == found(quotes) == 0


@pytest.mark.parametrize(("answer", "plain"), cases_of(__file__, "prose"))
def test_prose(answer, plain):
    assert terms.is_plain(answer) is plain
