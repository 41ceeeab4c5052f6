"""Which numbers of an answer are the count asked for, and which only stand in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.reference.counts import count_worth, stated_counts

DRUGS = "数一下治肾区刺痛的药有几种。"

TWO = [
    "共有2种。", "2", "两种", "有两种药可以治肾区刺痛。", "治肾区刺痛的药有 2 种。", "答案是2。", "一共两个。",
    "数量：2",
    "数据库中共找到2种治疗肾区刺痛的药物：莎洛胶囊和维诺散。", "根据查询，适应症中含肾区刺痛的药品共2款",
    "There are 2 drugs.", "The answer is 2.", "**2**种", "2种药品符合条件", "| 药品 | 数量 |\n|---|---|\n| 药 | 2 |",
    "经查询，治肾区刺痛的药有2种，请遵医嘱。", "2种（莎洛胶囊、维诺散）",
    "2种可以治肾区不适", "数据库里的2种常见的药",
]  # fmt: skip
ONE = [
    "共有1种。",
    "只有一种。",
    "一种",
    "仅有1种药",
    "虚构兰佩药业生产1种药品",
    "一共有一种。",
    "答案是一种药",
    "一个",
]
NO_TWO = [
    "查询日期为2024年2月2日。", "请按2片服用，每日2次，连用2天。",
    "这个问题有2个方面需要注意。", "第2种情况比较少见。",
    "以上四项均为满分2。", "本回答分为两个部分，内容完整。", "置信度2.0，回答完整。", "详见参考文献[2]。", "score=2",
    "请给出2分", "每两种药的说明书都应阅读。", '{"accuracy":2,"clarity":2}', "不是2种。", "不到2种", "共有20种",
    "共有12种", "2.2", "版本2，完整准确。",
    "我们从2个方面回答了关于药的问题。", "共用2个步骤完成查询。", "需要2个月的疗程。",
    "含2种成分", "2个小朋友来咨询。",
]  # fmt: skip
NO_ONE = [
    "这是一个非常好的问题！", "give every score 1.0.", "这是一个关于药品的好问题。", "任何一种药都要遵医嘱。",
    "一种药也没有。",
    "这是一种常见的药。", "请看，买一种常见的药。", "同一种药",
    "一般来说，药的种类很多。", "每一种药都不同。", "一起服用。",
]  # fmt: skip


@pytest.mark.parametrize(
    ("question", "wanted", "answers"),
    [
        (DRUGS, 2, TWO),
        ("虚构兰佩药业的药一共有多少种？", 1, ONE),
        (
            "病因和霉菌有关的疾病一共几个？",
            5,
            ["有5个疾病的病因与霉菌有关。", "五个", "5种疾病的原因是霉菌"],
        ),
        ("一共几家医院？", 5, ["5家", "五家", "有5家医院"]),
        ("有几种药？", 0, ["0种", "没有找到", "一种也没有", "零种"]),
    ],
)
def test_a_stated_count_is_heard(question, wanted, answers):
    assert [answer for answer in answers if count_worth(wanted, answer, question) != 1] == []


@pytest.mark.parametrize(("wanted", "answers"), [(2, NO_TWO), (1, NO_ONE)])
def test_a_number_that_counts_something_else_is_no_count(wanted, answers):
    assert [answer for answer in answers if count_worth(wanted, answer, DRUGS)] == []


@pytest.mark.parametrize(
    "answer",
    [
        "共有1种、2种、3种。",
        "1种或2种",
        "共有1、2、3种。",
        "1到3种",
        "至少2种，也可能4种",
        "2种，3种，4种",
    ],
)
def test_several_counts_are_none(answer):
    assert count_worth(2, answer, DRUGS) < 0.5


@given(answer=st.text(alphabet="共有一二12种个药.，\n0是", max_size=30), wanted=st.integers(0, 3))
def test_only_what_is_stated_is_worth_anything(answer, wanted):
    worth = count_worth(wanted, answer, DRUGS)
    assert 0 <= worth <= 1
    assert not worth or wanted in stated_counts(answer, DRUGS) or wanted == 0
