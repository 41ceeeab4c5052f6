"""What the offline judge is made of, by example: forms of text, polarity, abstentions; and rewards and verdicts.

Keeps of docs/offline-judge.md: each factor of the score does what the page says.
"""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.judge import ReferenceJudge, Verdict
from scoring.reference.abstention import abstains, honesty
from scoring.reference.facts import Reading, facts_of
from scoring.reference.finding import Finding, find, invented
from scoring.reference.text import canonical, numbers, words_only
from scoring.rubric import Reward

QUESTION = "朵朵片怎么吃？"


def test_canonical_by_example():
    assert (
        canonical("每次0.5克，每天两次") == canonical("一次500mg，一日2次") == "每次500毫克,每日2次"
    )
    assert canonical("不超过25℃") == canonical("≤25度") == "25度以下"
    assert canonical("共三十七种") == "共37种"
    assert canonical("1. 甲\n2. 乙") == "甲\n乙"
    assert canonical("１\u200b５毫克") == "15毫克"


def found(fact, answer):
    return find(facts_of(fact)[0], Reading(answer))


def test_findings_by_example():
    assert (
        found("孕妇禁用", "孕妇可用") == found("25度以下保存", "25度以上保存") == Finding(0.0, True)
    )
    assert found("孕妇禁用", "有孕妇的话不能用") == found("密封保存", "应密封保存") == Finding(1.0)
    assert found("持续胸痛", "没有持续胸痛") == Finding(0.0, True)
    assert found("成人一次0.5克", "儿童一次500毫克") == Finding(0.0, True)
    assert found("头晕", "腹泻") == Finding()


def test_inventions_by_example():
    known = Reading("饭后服用，可见头晕")
    assert (
        invented(Reading("饭后吃，有时头晕"), known, "")
        == invented(Reading("请遵医嘱"), known, "")
        == 0
    )
    assert invented(Reading("饭后服用，会导致失明"), known, "") > 0.5


def test_abstentions_by_example():
    assert abstains("数据库中没有找到该药。")
    assert not abstains("没有副作用，可以放心服用。")
    assert honesty("没有找到，建议咨询药师。", QUESTION) == 1
    assert honesty("没有找到，但可用里佩莎胶囊。", QUESTION) == 0


@pytest.mark.parametrize(
    "claim", ["嗜睡", "换季时加重", "咽喉发凉", "内容为空腹服用", "一般饭后", "密封，避光保存"]
)
def test_a_claim_beside_an_abstention_is_no_abstention(claim):
    assert honesty(f"没有找到相关记录，{claim}。", QUESTION) < 0.5
    assert honesty(f"{claim}。", QUESTION) == 0


@pytest.mark.parametrize(
    "answer",
    [
        "我在药品表中查询了朵朵片，结果为空。",
        "很遗憾，没有查到。如果您有其他问题，我可以帮您查询。",
        "数据库有朵朵片的记录，但没有记载它怎么吃。",
        "目前数据库未收录朵朵片，建议到正规医院就诊，由医生判断。",
        "SQL 查询返回 0 行，没有找到。以上信息仅供参考。",
        "没有找到，不过建议咨询药师。",
    ],
)
def test_what_is_said_about_the_search_costs_an_abstention_nothing(answer):
    assert honesty(answer, QUESTION) == 1


def test_every_clause_may_repeat_what_was_shown():
    shown = ["用于急性咽喉肿胀"]
    answer = "没有找到它怎么吃。适应症是用于急性咽喉肿胀。"
    assert honesty(answer, QUESTION, iter(shown)) == honesty(answer, QUESTION, shown) == 1
    assert honesty(answer, QUESTION) < 0.5


@pytest.mark.parametrize(
    "piece",
    [
        "的",
        "的的:",
        "一",
        "没有在",
        "1、",
        "一种",
        "共有3种药",
        "3或",
        "朵朵",
        "朵朵片、",
        "一次15毫克，",
        "片",
        "\n",
    ],
)
def test_a_long_hostile_answer_takes_no_time(piece):
    answer = piece * (9000 // len(piece)) + ":"
    rows = {"dosage": "一次15毫克，一日3次，饭后服用"}, {"med_name": "维诺散"}, {"count": 3}
    questions = QUESTION, "哪些药治头痛？", "治头痛的药有几种？"
    for row, question in zip(rows, questions, strict=True):
        taken = []
        for extra in (
            "",
            ":",
        ):  # the better of two: another process may have had the core; no text is cached
            start = time.perf_counter()
            ReferenceJudge().score(question=question, answer=answer + extra, rows=[row])
            taken.append(time.perf_counter() - start)
        assert min(taken) < 0.5


@given(text=st.text(max_size=60))
def test_text_in_normal_form(text):
    assert words_only(words_only(text)) == words_only(text)
    assert all(math.isfinite(number) for number in numbers(text))


def test_numbers_by_example():
    assert numbers("每次１．５毫克，共10次") == {1.5, 10}


@pytest.mark.parametrize(
    "values",
    [
        {"total": None, "terms": {}, "unscored": None},
        {"total": 1.0, "terms": {}, "unscored": "judge_failed"},
        {"total": math.nan, "terms": {}, "unscored": None},
        {"total": None, "terms": {"rule": math.inf}, "unscored": "x"},
    ],
)
def test_a_reward_has_a_finite_total_or_a_cause(values):
    with pytest.raises(ValueError, match="reward"):
        Reward(**values)


def test_verdicts_refuse_nonsense():
    assert Reward(1.0, {"rule": 0.1, "judge": 0.9}).unscored is None
    for values in ((None, {}, None), (0.5, {}, "x"), (1.5, {}, None), (math.nan, {}, None)):
        with pytest.raises(ValueError, match="score"):
            Verdict(*values)
