"""What gold is taken apart into, and where its facts may stand in an answer."""

from datetime import date
from decimal import Decimal

import pytest

from sql_agent.judge.reference import ReferenceJudge
from tests.corpora import cases_of

PAID = 0.5
worth = ReferenceJudge().score


@pytest.mark.parametrize(("answer", "paid"), cases_of(__file__, "counts"))
def test_a_count_is_its_number_in_a_sentence_about_what_was_asked(answer, paid):
    asked = {"question": "会并发牙龈酸痛的病有几种？", "reference": "共有4种。"}
    assert worth(answer=answer, **asked) == paid
    assert worth(answer=answer, rows=[{"count": 4}], **asked) == paid


@pytest.mark.parametrize(("about", "answer", "paid"), cases_of(__file__, "counts_before_words"))
def test_a_count_may_stand_before_a_word_that_begins_like_more(about, answer, paid):
    asked = {"question": f"数据库中有多少种{about}？", "reference": "共有3种。"}
    assert worth(answer=answer, rows=[{"count": 3}], **asked) == paid


def test_values_without_names_are_of_the_first_and_then_of_the_second():
    known = {
        "question": "朵朵片和莎洛胶囊怎么保存？",
        "reference": "朵朵片：密封；莎洛胶囊：避光，冷藏",
    }
    known["rows"] = [
        {"name": "莎洛胶囊", "field": "避光，冷藏"},
        {"name": "朵朵片", "field": "密封"},
    ]
    assert worth(answer="密封；避光，冷藏", **known) == 1
    assert worth(answer="避光，冷藏；密封", **known) < PAID


def test_names_must_stand_with_their_values():
    rows = [{"name": "朵朵片", "field": "密封"}, {"name": "莎洛胶囊", "field": "避光，冷藏"}]
    known = {"question": "朵朵片和莎洛胶囊怎么保存？", "rows": rows}
    assert worth(answer="莎洛胶囊：避光，冷藏；朵朵片：密封", **known) == 1
    assert worth(answer="莎洛胶囊：密封；朵朵片：避光，冷藏", **known) <= 0.2
    assert worth(answer="阿朵片：密封；阿洛胶囊：避光，冷藏", **known) <= 0.2


def test_fields_must_stand_with_their_values():
    known = {"question": "朵朵片的用法和贮藏？", "reference": "朵朵片的用法：口服；贮藏：密封"}
    known["rows"] = [{"name": "朵朵片", "usage": "口服", "storage": "密封"}]
    assert worth(answer="朵朵片的贮藏：密封；用法：口服", **known) == 1
    assert worth(answer="朵朵片的贮藏：口服；用法：密封", **known) < PAID
    assert worth(answer="口服贮藏，密封用法", **known) < PAID


@pytest.mark.parametrize(
    ("question", "reference", "answer", "score"), cases_of(__file__, "references_alone")
)
def test_of_a_reference_without_rows_its_facts_are_paid_and_nothing_else(
    question, reference, answer, score
):
    assert worth(question=question, answer=answer, reference=reference) == score


@pytest.mark.parametrize(
    ("question", "gold", "answer", "least", "most"), cases_of(__file__, "items_of_gold")
)
def test_an_item_of_gold_is_said_whole_in_any_list(question, gold, answer, least, most):
    rows = [{"field": gold}]
    assert least <= worth(question=question, answer=answer, rows=rows) <= most


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (1234567.5, "1234567.5"),
        (2.0, "2"),
        (0.1 + 0.2, "0.3"),
        (25.800711743772244, "25.800711743772244"),
        (Decimal("2.50"), "2.5"),
        (date(2024, 3, 9), "2024-03-09"),
    ],
)
def test_a_value_of_a_database_is_what_is_said_of_it(value, answer):
    assert worth(question="多少？", answer=answer, rows=[{"n": value}]) == 1
    assert worth(question="多少？", answer="1234570", rows=[{"n": value}]) == 0
