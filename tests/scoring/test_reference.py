"""The offline judge: 1 for every gold answer, 0 for answers that say nothing, in between for answers partly right."""

from __future__ import annotations

import asyncio
import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.load import load_rows
from scoring.judge import Case, ReferenceJudge, Verdict
from scoring.rubric import Reward, weighted_sum
from scoring.text import closeness, fragments, numbers, words_only
from utils.settings import ROOT

QUESTION = "朵朵片怎么吃？"
FIELD = "一次15毫克，一日3次，饭后服用"
REFERENCE = f"朵朵片的用法用量：{FIELD}"
GOLD = {"structured_gt": {"columns": ["dosage"], "rows": [[FIELD]]}}


def verdict(answer, reference=REFERENCE, context=(), gold=GOLD, question=QUESTION):
    return asyncio.run(ReferenceJudge().judge(Case(question, answer, reference, list(context), gold)))


def score(answer, **case):
    return verdict(answer, **case).score


def dataset():
    return [row for split in ("train", "val", "test") for row in load_rows(ROOT / "data" / f"{split}.parquet")]


def gold_of(row):
    return {"structured_gt": json.loads(row["structured_gt"]), "evidence": json.loads(row["evidence"])}


def results(*rows):
    return json.dumps({"status": "success", "columns": ["x"], "rows": rows}, ensure_ascii=False)


def test_every_gold_answer_scores_one_with_every_kind_of_gold():
    for row in dataset():
        gold = gold_of(row)
        context = [results(*gold["structured_gt"]["rows"])]
        for known in (gold, {"evidence": gold["evidence"]}, None):
            case = {"reference": row["answer"], "context": context, "gold": known, "question": row["question"]}
            assert score(row["answer"], **case) == 1
        assert score(gold["structured_gt"]["rows"][0][0], gold=gold, reference="", question=row["question"]) == 1


def test_answers_of_other_rows_score_low():
    rows = dataset()
    wrong = [
        score(other["answer"], gold=gold_of(row), reference=row["answer"], question=row["question"])
        for row, other in itertools.pairwise(rows)
    ]
    assert max(wrong) < 0.9
    assert sum(wrong) / len(wrong) < 0.05


@pytest.mark.parametrize(
    "answer", ["", "  ", "？！……", ":", QUESTION, f"{QUESTION}{QUESTION}", "朵朵片怎么吃", "\u200b", "---"]
)
def test_answers_that_say_nothing_score_zero(answer):
    assert verdict(answer) == Verdict(0.0, {"degenerate": 1.0})


@pytest.mark.parametrize(
    "answer", ["不知道", "我不能提供医疗建议，请咨询医生。", "Thought process:", "score: 1.0", "朵朵片", "是"]
)
def test_answers_beside_the_point_score_zero(answer):
    assert score(answer) == 0


@pytest.mark.parametrize(
    "answer",
    [
        "每次１５毫克，一日3次，饭后服用",
        "一次15毫克，一日3次",
        "饭后服用",
        "一次15毫克，一日2次，饭后服用",
        "一次15毫克，一日3次，饭前服用",
        "一次15毫克或20毫克，一日3次，饭后服用",
    ],
)
def test_answers_partly_right_score_in_between(answer):
    assert 0 < score(answer) < 1


def test_more_of_the_gold_text_scores_more():
    ladder = ["饭后服用", "一日3次，饭后服用", FIELD]
    assert [score(answer) for answer in ladder] == sorted({score(answer) for answer in ladder})


def test_a_wrong_number_costs_more_than_a_wrong_word():
    assert score("一次75毫克，一日3次，饭后服用") < score("一回15毫克，一日3次，饭后服用")


def test_naming_many_numbers_does_not_pay():
    listed = "、".join(f"一次{number}毫克" for number in (5, 10, 15, 20, 25))
    assert score(f"{listed}，一日3次，饭后服用") < 0.5


def test_white_space_width_and_case_do_not_matter():
    assert score("朵朵片：一次 15 毫克, 一日３次，\n饭后服用。") == 1
    gold = {"structured_gt": {"columns": ["a"], "rows": [["Below 25 °C"]]}}
    assert score("keep it below 25°c", gold=gold, reference="") == 1


def test_dumping_the_row_costs():
    cells = ["朵朵片", FIELD, "用于轻度胃部胀痛伴皮疹", "恶心、乏力，偶见手足麻木", "体弱者及对蜂蜜过敏者禁用"]
    dump = "；".join(cells)
    assert score(dump) > 0.9
    assert score(dump, context=[results(cells)]) < 0.5
    assert score(REFERENCE, context=[results(cells), "not json", "[1]", "3"]) == 1


def test_padding_costs():
    padding = "请遵医嘱并注意休息保持心情愉快" * 20
    assert 0 < score(REFERENCE + padding) < 0.4


def test_several_gold_values_are_paid_by_share():
    gold = {"structured_gt": {"columns": ["n"], "rows": [["头晕口干"], ["皮疹瘙痒"], [7], [None]]}}
    assert score("头晕口干", gold=gold, reference="", question="q") == pytest.approx(1 / 3)
    assert score("头晕口干、皮疹瘙痒，共7种", gold=gold, reference="", question="q") == 1


def test_without_anything_to_compare_with_the_case_is_not_scored():
    for gold in (None, {}, {"structured_gt": {"columns": [], "rows": []}, "evidence": []}):
        assert verdict("头晕", reference=" ", gold=gold) == Verdict(None, {}, "no_reference")


@given(answer=st.text(max_size=80), reference=st.text(max_size=80), question=st.text(max_size=30))
def test_any_text_gives_a_score_in_range_or_a_cause(answer, reference, question):
    found = verdict(answer, reference=reference, gold=None, question=question)
    assert (found.cause == "no_reference") == (not words_only(reference))
    assert found.score is None or 0 <= found.score <= 1
    assert found == verdict(answer, reference=reference, gold=None, question=question)


@given(text=st.text(max_size=60))
def test_text_in_normal_form(text):
    assert words_only(words_only(text)) == words_only(text)
    assert all(part and part == words_only(part) for part in fragments(text))
    assert all(math.isfinite(number) for number in numbers(text))


def test_closeness_by_example():
    assert closeness("一次15毫克", "我每天一次15毫克") == 1
    assert 0.5 < closeness("一次15毫克", "每次15毫克") < 1
    assert closeness("一次15毫克", "一次20毫克") == closeness("一次15毫克", "用") == closeness("一次15毫克", "") == 0
    assert closeness("5毫克", "15毫克") == 0
    assert numbers("每次１．５毫克，共10次") == {1.5, 10}
    assert fragments("比例1:2，约1.5克。每日3次，") == ["比例12", "约15克", "每日3次"]


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


def test_verdicts_and_sums_refuse_nonsense():
    assert Reward(1.0, {"rule": 0.1, "judge": 0.9}).unscored is None
    for values in ((None, {}, None), (0.5, {}, "x"), (1.5, {}, None), (math.nan, {}, None)):
        with pytest.raises(ValueError, match="score"):
            Verdict(*values)
    assert weighted_sum({"a": 0.5, "b": 1.0}, {"a": 0.2, "b": 0.8}) == pytest.approx(0.9)
    with pytest.raises(ValueError, match="do not fit"):
        weighted_sum({"a": 1.0}, {"b": 1.0})
