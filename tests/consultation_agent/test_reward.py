"""What each term pays, that nothing else is paid, and that the reference's numbers stay."""

import asyncio
from dataclasses import replace
from random import Random
from statistics import fmean
from typing import Any

import pytest

from common.command import UsageError
from conditions.condition_types import terms
from consultation_agent.advice import advice_value
from consultation_agent.environment import ConsultationEnvironment
from consultation_agent.protocol import Conclusion, Malformed, Question
from consultation_agent.record_patient import Exchange, Reply, question_for
from consultation_agent.reward import RUBRIC, inquiry_value, is_right, score
from consultation_agent.task import ConsultationTask
from episodes.episode import Episode
from scoring.case import Verdict
from scoring.rubric import Reward
from tests.consultation_agent.cases import ENVIRONMENT, SETTINGS, task_with, tasks
from tests.corpora import cases_of
from tests.judges import Fixed

TASK = task_with("appendicitis")
ADVICE = "马上去普外科急诊，禁食禁水"


def earned(*events: object, task: ConsultationTask = TASK, judge: Any = None) -> Reward:
    return asyncio.run(score(task, Episode(events=list(events)), RUBRIC, judge))


def advice_of(task: ConsultationTask, said: str) -> float:
    return advice_value(task.advice, said, task.recommendation)


def told(kind: str, *facets: str) -> Exchange:
    return Exchange("？", Reply(kind, "。", facets))


def test_weights_of_ones_own():
    own = ConsultationEnvironment(SETTINGS, {"reward": "format=0.2,recommendation=1*diagnosis"})
    assert own.highest == pytest.approx(1.2)
    gold = asyncio.run(own.gold(TASK))
    assert asyncio.run(own.score(TASK, gold)).total == pytest.approx(1.2)
    wrong = Episode(events=[Conclusion("胆囊炎", ADVICE)])
    assert asyncio.run(own.score(TASK, wrong)).total == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("name", "named"),
    [("nothing", "'nothing'"), ("judge=1", "judge"), ("diagnosis=0", "'diagnosis'")],
)
def test_a_reward_there_is_not_is_a_wrong_usage(name, named):
    with pytest.raises(UsageError, match=named):
        ConsultationEnvironment(SETTINGS, {"reward": name})


@pytest.mark.parametrize(("said", "right"), cases_of(__file__, "names_of_appendicitis"))
def test_any_name_of_the_condition_is_right_and_a_list_is_not(said, right):
    assert is_right(TASK, said) is right


def test_without_a_diagnosis_only_the_form_is_paid():
    reward = earned(*(told("informative", facet) for facet in TASK.distinguishing))
    assert reward.terms == {"format": 0.1, "diagnosis": 0, "recommendation": 0, "inquiry": 0}
    assert earned(Malformed("no_answer")).total == earned().total == 0


def test_a_compound_question_finds_one_thing_and_asks_for_each():
    task = next(task for task in tasks() if len(task.distinguishing) == 3)
    questions = [question_for(item) for item in task.distinguishing]
    end = Conclusion(task.reference, task.recommendation)

    def inquiry(asked: list[str]) -> float:
        return inquiry_value(task, ENVIRONMENT.rehearse(task, [*map(Question, asked), end], 9))

    assert inquiry(questions) == 1
    assert inquiry(["".join(questions)]) == pytest.approx(1 / 3)


def test_questions_that_find_nothing_dilute_the_inquiry():
    end, found = (
        Conclusion(TASK.reference, ADVICE),
        [told("informative", facet) for facet in TASK.distinguishing],
    )
    spare = [told("off_topic")] * len(found)
    assert earned(*found, end).terms["inquiry"] == pytest.approx(0.1)
    assert earned(*found, *spare, end).terms["inquiry"] == pytest.approx(0.05)
    assert earned(end).terms["inquiry"] == 0


def test_a_judge_gives_the_values():
    judge = Fixed(Verdict(0.6, {"diagnosis": 1.0, "recommendation": 0.5}))
    reward = earned(Conclusion("阑尾发炎", "急诊"), judge=judge)
    assert reward.terms["diagnosis"] == pytest.approx(0.6)
    assert reward.terms["recommendation"] == pytest.approx(0.15)
    assert judge.asked[0].answer == "诊断：阑尾发炎\n建议：急诊"
    beside = {"diagnosis_by_rule": 0.0, "diagnosis_by_judge": 1.0, "diagnosis_agreement": 0.0}
    assert reward.measures == beside


def test_a_choice_between_options_is_compared_and_no_judge_is_asked():
    judge = Fixed(Verdict(0.0))
    task = replace(TASK, options={"A": "急性阑尾炎", "B": "肺炎"}, reference="A")
    reward = earned(Conclusion("A", "急诊"), task=task, judge=judge)
    assert reward.terms["diagnosis"] == pytest.approx(0.6)
    assert judge.asked == []


def test_a_judge_s_single_score_counts_for_both_and_the_score_is_by_their_weights():
    """The score decides whether a judge took a canary for good: form and inquiry are not in it."""
    single = earned(Conclusion("阑尾发炎", "急诊"), judge=Fixed(Verdict(0.5)))
    assert single.terms == pytest.approx(
        {"format": 0.1, "diagnosis": 0.3, "recommendation": 0.15, "inquiry": 0.0}
    )
    assert single.score == pytest.approx(0.5)
    parts = {"diagnosis": 1.0, "recommendation": 0.25}
    assert earned(
        Conclusion("阑尾发炎", "急诊"), judge=Fixed(Verdict(0.5, parts))
    ).score == pytest.approx(0.75)
    assert (
        earned(Conclusion("阑尾发炎", "急诊"), judge=Fixed(Verdict(0.0))).terms["diagnosis"] == 0.0
    )


def test_senseless_words_beside_advice_are_no_advice_and_cost_what_they_are_beside():
    items = [item.replace("*", "") for item in TASK.advice]
    own = [term for item in TASK.advice for term in terms(item)]
    senseless = "没有找到、；有卡上试重试的"
    assert advice_of(TASK, senseless.join(own)) == 0
    assert advice_of(TASK, f"；{senseless}；".join(items)) < 0.7
    assert advice_of(TASK, "，".join([*items, "带上以往的化验单", "最好让家属陪同"])) == 1


def test_common_characters_strewn_between_words_of_advice_are_no_clauses():
    own = [term for item in TASK.advice for term in terms(item)]
    common = "的一是了我不在人有他这上们来到时大地为子中你说生国年着就那和要她出也得里后自以会家可下而过天去"
    random = Random(0)
    worth = []
    for length in (1, 2, 3, 6, 12) * 10:
        strewn = ["".join(random.choices(common, k=length)) + term for term in own]
        worth += [advice_of(TASK, "".join(strewn)), advice_of(TASK, "，".join(strewn))]
    assert fmean(worth) < 0.1


def test_a_row_without_known_names_or_advice_is_compared_by_its_words():
    """The disease that its sentence names is needed; advice earns by its content words."""
    told = (
        "Based on your symptoms, you likely have acute appendicitis, possibly with a perforation."
    )
    task = replace(
        TASK,
        names=(),
        advice=(),
        reference=told,
        recommendation="I recommend surgery today and nothing to eat.",
    )
    right = earned(Conclusion("Acute appendicitis", "Surgery today, nothing to eat."), task=task)
    assert right.terms["diagnosis"] == pytest.approx(0.6)
    assert right.terms["recommendation"] == pytest.approx(0.3)
    plain = replace(task, recommendation="Please see a doctor.")
    same = earned(Conclusion("Acute appendicitis", "Please see a doctor"), task=plain)
    assert same.terms["recommendation"] == pytest.approx(0.3)
    empty = "Based on your symptoms and history, you likely have an infection in your system."
    for diagnosis in (empty, "Based on your symptoms, you likely have gastritis.", "acute"):
        advice = "I recommend rest. If symptoms persist or worsen, please seek medical attention."
        wrong = earned(Conclusion(diagnosis, advice), task=task)
        assert wrong.terms["diagnosis"] == wrong.terms["recommendation"] == 0
    assert earned(Conclusion(told, "x"), task=task).terms["diagnosis"] == pytest.approx(0.6)


def test_a_judge_that_fails_leaves_it_unscored_and_is_not_asked_for_nothing():
    judge = Fixed(Verdict(None, cause="judge_failed"))
    reward = earned(Conclusion("阑尾炎", "急诊"), judge=judge)
    assert reward.total is None
    assert reward.terms == {}
    assert reward.unscored == "judge_failed"
    assert reward.counters == {}
    assert earned(told("unknown"), Conclusion("阑尾炎", "急诊"), judge=judge).counters == {
        "unknown": 1.0
    }
    assert earned(Malformed("empty"), judge=judge).total == 0


@pytest.mark.parametrize("case", cases_of(__file__, "advice"), ids=lambda case: case["said"])
def test_advice_is_read_in_its_sense(case):
    """A negation acts on what follows in its predicate; both senses at once are none, and a
    contradicted term counts against its item. Items of a gold are joined by "；".
    """
    gold = case["gold"]
    items = tuple(gold.split("；")) if "*" in gold else ()  # or a sentence
    task = replace(TASK, advice=items, recommendation=gold.replace("*", ""))
    assert advice_of(task, case["said"]) == pytest.approx(case["worth"])
