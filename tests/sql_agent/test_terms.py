"""The arithmetic behind reward terms: result sets, evidence, quantities, citations, manner.

Keeps of docs/rewards.md, "Terms": what earns each term.
"""

from __future__ import annotations

import pytest

from sql_agent import terms

GOLD = {"columns": ["med_name", "dosage"], "rows": [["甲片", "一次1片"], ["乙片", "一次2片"]]}


@pytest.mark.parametrize(
    ("columns", "rows", "same"),
    [
        (["med_name", "dosage"], [["甲片", "一次1片"], ["乙片", "一次2片"]], True),
        (["n", "d"], [["乙片", "一次2片"], ["甲片", "一次1片"]], True),
        (["dosage", "med_name"], [["一次1片", "甲片"], ["一次2片", "乙片"]], True),
        (["n", "d"], [["甲片", "一次2片"], ["乙片", "一次1片"]], False),
        (["n", "d"], [["甲片", "一次1片"]] * 2, False),
    ],
)
def test_result_sets(columns, rows, same):
    assert terms.same_result(columns, rows, GOLD) is same


def test_order_counts_only_where_gold_says_so():
    backwards = [["乙片", "一次2片"], ["甲片", "一次1片"]]
    assert terms.same_result(["a", "b"], backwards, GOLD)
    assert not terms.same_result(["a", "b"], backwards, GOLD | {"ordered": True})
    assert terms.same_result(["a", "b"], GOLD["rows"], GOLD | {"ordered": True})


@pytest.mark.parametrize(
    ("shown", "gold", "same"),
    [
        (3, 4, False),
        ("ＡＢ", "AB", True),
        ("甲…", "甲乙", True),
        (True, 1, False),
        (12345678901234567, 12345678901234568, False),  # one number, where they are read as floats
    ],
)
def test_cells(shown, gold, same):
    assert terms.same_result(["x"], [[shown]], {"columns": ["y"], "rows": [[gold]]}) is same


def test_an_empty_result_is_the_gold_of_an_unanswerable_question():
    assert terms.same_result(["a", "b"], [], {"columns": ["dosage"], "rows": []})
    assert not terms.same_result(["a"], [["x"]], {"columns": ["dosage"], "rows": []})


def test_evidence():
    quotes = ["密封，阴凉处保存", "一次1片"]
    assert terms.evidence_found(quotes, ["密封, 阴凉处保存", "别的"]) == 0.5
    assert terms.evidence_found(quotes, ["密封，阴…", "一次1片，饭后"]) == 1
    assert terms.evidence_found(quotes, ["…"]) == 0, "of a cell that was cut to nothing"
    assert terms.evidence_found([], ["x"]) == terms.evidence_found(quotes, []) == 0
    assert (
        terms.evidence_among(quotes, ["一次1片", "禁忌：孕妇", "甲片", "一次1片"], "甲片怎么吃？")
        == 0.5
    )
    assert (
        terms.evidence_among(quotes, ["甲片"], "甲片怎么吃？")
        == terms.evidence_among(quotes, [], "q")
        == 0
    )


@pytest.mark.parametrize("quote", ["存保处凉阴", "密阴封凉", "密封密封"])
def test_a_quote_of_a_cell_s_characters_in_another_order_is_none(quote: str) -> None:
    assert terms.evidence_found([quote], ["密封，阴凉处保存"]) == 0
    assert terms.evidence_among([quote], ["密封，阴凉处保存"], "怎么保存？") == 0


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("每次0.5g，每天3次", 1.0),
        ("一次500毫克，一日三次", 1.0),
        ("一次500毫升，一日3次", 0.75),
    ],
)
def test_quantities(answer, value):
    known = "一次500毫克，一日3次，饭后服用"
    assert terms.quantities_agree(answer, known, known) == value


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("密封保存", 1.0),
        ("原文为“密封，阴凉处保存”。", 1.0),
        ("原文为“冷冻保存三个月”。", 0.0),
        ("“密封，阴凉处保存”，又“冷冻保存三个月”", 0.5),
        ("密封保存，见 https://example.org/x", 0.0),
        ("原文为“不得冷冻”。", 0.0),
    ],
)
def test_claims(answer, value):
    assert terms.claims_hold(answer, "密封，阴凉处保存") == value


@pytest.mark.parametrize(
    "answer", ['{"sql": "SELECT 1"}', "<tool_call>x", "```sql\nx\n```", "[1, 2]"]
)
def test_what_is_no_prose(answer):
    assert not terms.is_plain(answer)


@pytest.mark.parametrize("answer", ["一次1片，温度<25℃", "[1] 密封", "[用法用量]口服"])
def test_prose(answer):
    assert terms.is_plain(answer)
