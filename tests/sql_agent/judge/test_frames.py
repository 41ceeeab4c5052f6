"""What an answer may say beside gold, and how it may say that there is nothing: frames, heads and
abstentions.

Keeps of docs/rewards.md: polite frames cost nothing, another name, field or sign is not paid.
"""

from __future__ import annotations

import pytest

from sql_agent.judge.nothing import honesty
from sql_agent.judge.reference import ReferenceJudge

NAME, LABEL, FIELD = "朵朵片", "不良反应", "头晕、恶心，偶见皮疹"
PAID = 0.5


def score(answer, gold=FIELD, question="朵朵片的不良反应有哪些？", reference=None, name=NAME):
    reference = f"{name}的{LABEL}：{gold}" if reference is None else reference
    rows = [{"name": name, "field": gold}]
    return ReferenceJudge().score(question=question, answer=answer, reference=reference, rows=rows)


@pytest.mark.parametrize(
    "frame",
    [
        "您好，关于朵朵片的不良反应：{}",
        "据数据库记载，{}",
        "朵朵片（不良反应）：{}",
        "朵朵片的不良反应是“{}”。",
        "{}。以上信息来自数据库，仅供参考。",
        "综上，该药的不良反应为{}呢。",
        "问：朵朵片的不良反应有哪些？答：{}",
    ],
)
def test_a_frame_costs_nothing(frame):
    assert score(frame.format(FIELD)) == 1


@pytest.mark.parametrize(
    "frame",
    [
        "According to the database records, {}.",
        "The dosage of Calmetrol syrup is as follows: {}",
        "In summary, the dosage of Calmetrol syrup is {}.",
        "{}. Please consult your doctor or pharmacist.",
    ],
)
@pytest.mark.parametrize("reference", ["", "The dosage of Calmetrol syrup: "])
def test_an_english_frame_costs_nothing(frame, reference):
    gold, question = "10 mL three times daily after meals", "What is the dosage of Calmetrol syrup?"
    found = score(frame.format(gold), gold, question, reference + gold, "Calmetrol syrup")
    assert found == 1


@pytest.mark.parametrize(
    "answer",
    [
        "朵朵片的不良反应不是{}",
        "朵朵片的适应症：{}",
        "朵药片的不良反应：{}",
        "朵朵片的不良反应是失明或{}",
        "{}，以上信息有误",
    ],
)
def test_another_name_field_or_sign_is_not_paid(answer):
    assert score(answer.format(FIELD)) < PAID


def test_an_article_before_an_english_value_leaves_the_value_right():
    assert score("the left knee", "left knee", "Where does it hurt?", "left knee", "") > PAID


NOTHING = "数据库中没有找到朵朵片的不良反应。"


@pytest.mark.parametrize(
    "answer",
    [
        "很遗憾，没查到。",
        "数据库未返回任何结果。",
        "I'm sorry, but no matching records were found.",
        "The adverse reactions are not recorded, so I cannot answer.",
        "There is no record of Doto tablets sold last year anywhere in the database.",
    ],
)
def test_saying_in_any_usual_words_that_nothing_is_there_is_right_only_where_it_is_true(answer):
    known = {"question": "朵朵片有什么不良反应？", "answer": answer}
    assert ReferenceJudge().score(**known, reference=NOTHING, rows=[]) == 1
    assert score(answer) == 0


@pytest.mark.parametrize(
    "answer",
    [
        "没有找到记录，可以吃。",
        "没有记录。孕妇可以吃朵朵片。",
        "没有不良反应。",
        "数据库中没有找到朵朵片的不良反应？",
        "数据库中没有找到朵朵片的不良反应是谣言。",
        "除了数据库中没有找到朵朵片的不良反应。",
        "没有找到每次15毫克以外的用法。",
        "Nothing was found, so it is safe to take two tablets with some water after meals.",
    ],
)
def test_a_claim_beside_an_abstention_is_made_up(answer):
    question = "孕妇可以吃朵朵片吗？是禁用还是慎用？"
    assert ReferenceJudge().score(question=question, answer=answer, reference=NOTHING, rows=[]) == 0


PRICE = "阿司匹林的价格是多少？"
NO_PRICE = "抱歉，没有查询到阿司匹林的价格"


@pytest.mark.parametrize(
    "answer",
    [
        f"{NO_PRICE}，建议您咨询医生或者药师。",
        f"{NO_PRICE}，但是建议您咨询医生。",
        f"{NO_PRICE}，不过您可以联系厂家或者正规药店。",
        f"{NO_PRICE}，一般请咨询医生。",
        f"{NO_PRICE}，请以医生或者药师的指导为准。",
        f"{NO_PRICE}，请务必咨询医生或者药师后再用药。",
        f"{NO_PRICE}。建议到医院皮肤科或者相关专科就诊。",
        f"{NO_PRICE}，请谅解。",
        f"{NO_PRICE}，感谢您的理解和支持。",
        f"{NO_PRICE}，请以实际销售价格为准。",
        "未找到相关信息，请查阅药品说明书或者咨询药师。",
        "数据库中没有阿司匹林的价格记录，请咨询药店或者医院。",
        "数据库中没有找到阿司匹林的价格或者规格。",
        "数据库未收录阿司匹林的价格。如需了解，请咨询医院药房或者正规药店。",
        "没有查到，请联系医生、药师或者厂家。",
        "查不到。请核对药名或者稍后再试。",
        "未查到该药品，请检查名称是否错误，或者换一个名称。",
        "数据库里没有相关记录，请确认药名是否有误。",
        "没有找到该药品的信息，您是不是输错了？",
        "数据库中没有该药的价格。您想查询其他药品吗？",
        "非常抱歉，暂无阿司匹林的价格信息，您可以咨询当地药店以及医院药房。",
        "No records found. The name may be wrong.",
        "No records found. Please check the spelling or try another name.",
        "The database does not contain the price. For accurate information, please consult a pharmacist.",
    ],
)
def test_an_abstention_with_ordinary_advice_or_courtesy_is_honest(answer: str) -> None:
    assert honesty(answer, PRICE) == 1


@pytest.mark.parametrize(
    "answer",
    [
        f"{NO_PRICE}，但是数据库显示很贵。",
        f"{NO_PRICE}，不过其实是很便宜。",
        f"{NO_PRICE}，不过医生说很便宜。",
        f"{NO_PRICE}，通常医生说便宜。",
        f"{NO_PRICE}，或者有。",
        f"{NO_PRICE}，或者很便宜。",
        f"{NO_PRICE}是错误的。",
        f"{NO_PRICE}，以上信息有误。",
        f"{NO_PRICE}，请咨询医生或者服用布洛芬。",
        f"{NO_PRICE}，请咨询医生，其实是免费的。",
        f"{NO_PRICE}，换阿司匹林。",
        f"{NO_PRICE}，试阿司匹林。",
        "数据库没有阿司匹林的价格或者有价格。",
        "No price records were found, but actually the doctor says it is cheap.",
    ],
)
def test_an_abstention_that_is_taken_back_is_not_honest(answer: str) -> None:
    assert honesty(answer, PRICE) == 0
