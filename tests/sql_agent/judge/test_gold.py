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


@pytest.mark.parametrize(
    ("about", "answer", "paid"),
    [
        ("来自云南的药品", "共有3种来自云南的药品。", 1),
        ("来氟米特制剂", "3种来氟米特制剂", 1),
        ("多潘立酮制剂", "3种多潘立酮制剂", 1),
        ("多西他赛制剂", "3种多西他赛制剂", 1),
        ("多西他赛制剂", "3种多", 0),
        ("多西他赛制剂", "3来种多西他赛制剂", 0),
        ("来自云南的药品", "3种多药品", 0),
    ],
)
def test_a_count_may_stand_before_a_word_that_begins_like_more(about, answer, paid):
    asked = {"question": f"数据库中有多少种{about}？", "reference": "共有3种。"}
    assert worth(answer=answer, rows=[{"count": 3}], **asked) == paid


def test_values_without_names_are_of_the_first_and_then_of_the_second():
    rows = [{"name": "莎洛胶囊", "field": "避光，冷藏"}, {"name": "朵朵片", "field": "密封"}]
    known = {
        "question": "朵朵片和莎洛胶囊怎么保存？",
        "reference": "朵朵片：密封；莎洛胶囊：避光，冷藏",
        "rows": rows,
    }
    assert worth(answer="密封；避光，冷藏", **known) == 1
    assert worth(answer="避光，冷藏；密封", **known) < PAID


def test_names_must_stand_with_their_values():
    rows = [{"name": "朵朵片", "field": "密封"}, {"name": "莎洛胶囊", "field": "避光，冷藏"}]
    known = {"question": "朵朵片和莎洛胶囊怎么保存？", "rows": rows}
    judge = ReferenceJudge()
    assert judge.score(answer="莎洛胶囊：避光，冷藏；朵朵片：密封", **known) == 1
    assert judge.score(answer="莎洛胶囊：密封；朵朵片：避光，冷藏", **known) <= 0.2
    assert judge.score(answer="阿朵片：密封；阿洛胶囊：避光，冷藏", **known) <= 0.2


def test_fields_must_stand_with_their_values():
    known = {
        "question": "朵朵片的用法和贮藏？",
        "reference": "朵朵片的用法：口服；贮藏：密封",
        "rows": [{"name": "朵朵片", "usage": "口服", "storage": "密封"}],
    }
    judge = ReferenceJudge()
    assert judge.score(answer="朵朵片的贮藏：密封；用法：口服", **known) == 1
    assert judge.score(answer="朵朵片的贮藏：口服；用法：密封", **known) < PAID
    assert judge.score(answer="口服贮藏，密封用法", **known) < PAID


@pytest.mark.parametrize(
    ("question", "reference", "answer", "score"),
    [
        ("能治头痛的药有几种？", "共有3种。", "一共有三种药可以治头痛。", 1),
        ("胰岛素如何给药？", "皮下注射是首选。", "首选", 0),
        ("哪类病不是传染病？", "乙类", "乙类传染病", 0),
        ("怎么用？", "口服，-20度", "- 口服 -\n- -20℃ -", 1),
        ("甲药和乙药怎么用？", "甲药的用法：口服；乙药的用法：外用", "甲药外用，乙药口服", 0),
    ],
)
def test_of_a_reference_without_rows_its_facts_are_paid_and_nothing_else(
    question, reference, answer, score
):
    assert worth(question=question, answer=answer, reference=reference) == score


@pytest.mark.parametrize(
    ("question", "gold", "answer", "least", "most"),
    [
        ("不可与什么同服？", "酒精和阿司匹林同服易出血", "阿司匹林同服易出血", 0, 0),
        ("有哪些不良反应？", "恶心、呕吐，以及头晕", "头晕、恶心、呕吐", 1, 1),
        ("Which?", "Corazel, Velorin, and Mistapan", "Mistapan, Velorin and Corazel", 1, 1),
        ("有什么功效？", "调和营卫、解肌发表", "营卫、解肌发表", 0, 0.2),
        ("儿童能用朵朵片吗？", "儿童慎用", "儿童慎用，儿童能用", 0, 0.2),
    ],
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
