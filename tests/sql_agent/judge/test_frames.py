"""What an answer may say beside gold, and how it may say that there is nothing."""

import pytest

from scoring.case import Case
from sql_agent.judge.nothing import honesty
from sql_agent.judge.reference import ReferenceJudge
from tests.corpora import cases_of

NAME, LABEL, FIELD = "朵朵片", "不良反应", "头晕、恶心，偶见皮疹"
PAID = 0.5


def score(answer, gold=FIELD, question="朵朵片的不良反应有哪些？", reference=None, name=NAME):
    reference = f"{name}的{LABEL}：{gold}" if reference is None else reference
    rows = [{"name": name, "field": gold}]
    return ReferenceJudge().score(question=question, answer=answer, reference=reference, rows=rows)


@pytest.mark.parametrize("frame", cases_of(__file__, "frames"))
def test_a_frame_costs_nothing(frame):
    assert score(frame.format(FIELD)) == 1


@pytest.mark.parametrize(
    ("head", "paid"),
    [
        ("朵朵片的储存温度", 1),  # 保存温度 is asked
        ("朵朵片的存储方法", 1),  # 方法 is gold's
        ("朵朵片的适应症", 0),
        ("朵朵片的保存禁忌", 0),
        ("朵朵丸的储存温度", 0),
        ("朵朵丸储存温度", 0),
    ],
)
def test_a_field_may_be_told_in_words_like_those_of_the_question(head, paid):
    question = "朵朵片的保存温度是多少？"
    reference = "朵朵片的贮藏方法：密封，28℃以下保存"
    assert score(f"{head}：密封，28℃以下保存", "密封，28℃以下保存", question, reference) == paid


@pytest.mark.parametrize(("answer", "paid"), cases_of(__file__, "parts_of_field_names"))
def test_a_part_of_a_fields_name_is_that_field_among_several(answer, paid):
    question = "朵朵片的不良反应和相互作用是什么？"
    reference = "朵朵片的不良反应：盗汗、消瘦；药物相互作用：与浓茶同服会减弱药效"
    assert ReferenceJudge().score(question=question, answer=answer, reference=reference) == paid


@pytest.mark.parametrize("frame", cases_of(__file__, "english_frames"))
@pytest.mark.parametrize("reference", ["", "The dosage of Calmetrol syrup: "])
def test_an_english_frame_costs_nothing(frame, reference):
    gold, question = "10 mL three times daily after meals", "What is the dosage of Calmetrol syrup?"
    found = score(frame.format(gold), gold, question, reference + gold, "Calmetrol syrup")
    assert found == 1


@pytest.mark.parametrize("answer", cases_of(__file__, "other_answers"))
def test_another_name_field_or_sign_is_not_paid(answer):
    assert score(answer.format(FIELD)) < PAID


NOTHING = "数据库中没有找到朵朵片的不良反应。"


@pytest.mark.parametrize("answer", cases_of(__file__, "nothing_found"))
def test_saying_in_any_usual_words_that_nothing_is_there_is_right_only_where_it_is_true(answer):
    known = {"question": "朵朵片有什么不良反应？", "answer": answer}
    assert ReferenceJudge().score(**known, reference=NOTHING, rows=[]) == 1
    assert score(answer) == 0


@pytest.mark.parametrize("answer", cases_of(__file__, "claims"))
def test_a_claim_beside_an_abstention_is_made_up(answer):
    question = "孕妇可以吃朵朵片吗？是禁用还是慎用？"
    assert ReferenceJudge().score(question=question, answer=answer, reference=NOTHING, rows=[]) == 0


PRICE = "阿司匹林的价格是多少？"


@pytest.mark.parametrize(("answer", "paid"), cases_of(__file__, "abstentions"))
def test_an_abstention_goes_with_advice_and_courtesy_and_with_no_claim(answer, paid):
    assert honesty(answer, PRICE) == paid


@pytest.mark.parametrize(
    ("question", "reference", "answer", "paid"), cases_of(__file__, "abstentions_that_name")
)
def test_an_abstention_names_what_is_asked_or_nothing(question, reference, answer, paid):
    nothing = {"structured_gt": {"columns": [], "rows": []}}
    case = Case(question, answer, reference, gold=nothing)
    assert ReferenceJudge().compare(case).score == paid
