"""What an answer may say beside gold, and how it may say that there is nothing."""

import pytest

from scoring.case import Case
from sql_agent.judge.reference import ReferenceJudge
from tests.corpora import cases_of

FIELD = "头晕、恶心，偶见皮疹"
NOTHING = "数据库中没有找到朵朵片的不良反应。"
worth = ReferenceJudge().score


def score(answer):
    rows = [{"name": "朵朵片", "field": FIELD}]
    known = {"question": "朵朵片的不良反应有哪些？", "reference": f"朵朵片的不良反应：{FIELD}"}
    return worth(answer=answer, rows=rows, **known)


@pytest.mark.parametrize("frame", cases_of(__file__, "frames"))
def test_a_frame_costs_nothing(frame):
    assert score(frame.format(FIELD)) == 1


@pytest.mark.parametrize("answer", cases_of(__file__, "other_answers"))
def test_another_name_field_or_sign_is_not_paid(answer):
    assert score(answer.format(FIELD)) < 0.5


@pytest.mark.parametrize("answer", cases_of(__file__, "nothing_found"))
def test_saying_in_any_usual_words_that_nothing_is_there_is_right_only_where_it_is_true(answer):
    question = "朵朵片有什么不良反应？"
    assert worth(question=question, answer=answer, reference=NOTHING, rows=[]) == 1
    assert score(answer) == 0


@pytest.mark.parametrize(
    ("question", "reference", "answer", "paid"), cases_of(__file__, "abstentions")
)
def test_an_abstention_goes_with_advice_and_names_what_is_asked_or_nothing(
    question, reference, answer, paid
):
    nothing = {"structured_gt": {"columns": [], "rows": []}}
    case = Case(question, answer, reference, gold=nothing)
    assert ReferenceJudge().compare(case).score == paid
