"""What a case earns: its diagnosis by any name, its orders one to one, nothing for fooling."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from diagnosis_agent.environment import ENOUGH, TO_THE_JUDGE
from diagnosis_agent.judge_words import WORDS, addresses_the_judge, f1
from diagnosis_agent.protocol import Conclusion, Order
from diagnosis_agent.record_simulator import Exchange, Result, own_name
from diagnosis_agent.reward import RUBRIC, examination_values, key_of, score
from diagnosis_agent.task import DiagnosisTask
from episodes.episode import Episode
from scoring.case import Case, Verdict
from scoring.llm_judge import LLMJudge
from scoring.rubric import Reward
from tests.corpora import cases_of
from tests.diagnosis_agent.cases import ENVIRONMENT, task_with, tasks
from tests.judges import Fixed

TASK = task_with("appendicitis")
ADDRESSES = cases_of(__file__, "corpus/addresses")


def ended(diagnosis: str | None, *names: str, task: DiagnosisTask = TASK) -> Episode:
    orders = [Order("unknown", name, "to see") for name in names]
    end = [Conclusion(diagnosis, ENOUGH)] if diagnosis else []
    return ENVIRONMENT.rehearse(task, [*orders, *end], 12)


def earned(episode: Episode, task: DiagnosisTask = TASK, judge: Any = None) -> Reward:
    return asyncio.run(score(task, episode, RUBRIC, judge))


def test_gold_earns_all_and_nothing_earns_more():
    for task in tasks()[::10]:
        reward = earned(asyncio.run(ENVIRONMENT.gold(task)), task)
        assert reward.total == pytest.approx(1.6)
        assert reward.score == pytest.approx(1)


def test_repeats_and_unavailable_orders_cost_precision():
    full = earned(ended("appendicitis", *TASK.key)).terms["examinations"]
    repeated = earned(ended("appendicitis", *TASK.key, *TASK.key)).terms["examinations"]
    unavailable = earned(ended("appendicitis", *TASK.key, "telepathy")).terms["examinations"]
    assert full == pytest.approx(0.5)
    assert repeated == pytest.approx(0.5 * f1(3, 6, 3, 3))
    assert unavailable == pytest.approx(0.5 * f1(3, 4, 3, 3))


@pytest.mark.parametrize(
    ("condition", "recommended", "optional"),
    [
        ("lumbar_strain", "back examination with straight leg raise", "spine X-ray"),
        ("pancreatitis", "lipase", "abdominal CT"),
        ("migraine", "neurological examination", "MRI of the brain"),
    ],
)
def test_what_no_guideline_recommends_is_neither_paid_nor_charged(condition, recommended, optional):
    task = task_with(condition)
    for orders in ((recommended,), (recommended, optional)):
        reward = earned(ended(task.reference, *orders, task=task), task)
        assert reward.terms["examinations"] == pytest.approx(0.5)
    assert earned(ended(task.reference, optional, task=task), task).terms["examinations"] == 0
    again = ended(task.reference, recommended, optional, optional, task=task)
    assert earned(again, task).terms["examinations"] < 0.5


def test_without_a_conclusion_nothing_is_paid():
    assert earned(ended(None, *TASK.key)).total == 0


def test_the_rule_s_value_stands_beside_the_judge_s():
    right = Fixed(Verdict(1.0, {"diagnosis": 1.0, "examinations": 0.5}))
    beside = earned(ended("inflammation", "CBC"), judge=right).measures
    by = {"diagnosis_by_rule": 0.0, "diagnosis_by_judge": 1.0}
    assert beside == by | {"diagnosis_agreement": 0.0}
    assert earned(ended(TASK.reference, "CBC"), judge=right).measures["diagnosis_agreement"] == 1
    assert earned(ended(TASK.reference, "CBC")).measures == {}


def test_a_judge_sees_the_case_its_gold_and_what_came_of_the_orders():
    """Orders that came to nothing would be judged as if they had told the policy something."""
    judge = Fixed(Verdict(1.0))
    earned(ended("inflammation", "CBC", "full blood count", "telepathy"), judge=judge)
    gold = {"key": sorted(key_of(TASK)), "orders": 3}
    seen = Case(TASK.question, "inflammation", TASK.reference, ["complete blood count"], gold)
    assert judge.asked == [seen]


def test_a_panel_is_one_order_for_all_of_its_examinations():
    key = ("electrolytes", "renal function tests")
    task = replace(TASK, key=key)
    values = examination_values(task, ended("gout", "BMP", task=task))
    assert values == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    again = examination_values(task, ended("gout", "BMP", "creatinine", task=task))
    assert (again["precision"], again["recall"]) == (0.5, 1.0)


def test_a_case_without_recommended_examinations_is_paid_without_them():
    task = replace(TASK, key=())
    reward = earned(ended("appendicitis", task=task), task)
    assert reward.terms == {"format": 0.1, "diagnosis": 1.0}
    assert reward.score == 1.0, "it earned what it could"
    assert earned(ended("gout", task=task), task).score == pytest.approx(0.1 / 1.1)


def test_a_judge_that_fails_leaves_it_unscored():
    judge = Fixed(Verdict(None, cause="judge_failed"))
    unscored = earned(ended("appendicitis", "telepathy"), judge=judge)
    assert (unscored.total, unscored.terms, unscored.unscored) == (None, {}, "judge_failed")
    assert unscored.counters == {"malformed": 0.0, "unavailable": 1.0}
    assert earned(ended(None), judge=judge).total == 0


def test_a_code_and_a_score_are_no_words_to_the_judge():
    for case in ADDRESSES:
        assert addresses_the_judge(case["said"]) == case["addresses"], case


@pytest.mark.parametrize("beside", ["(Alvarado score: 9)", ", AIR score > 8", "[ICD-10: K35.80]"])
def test_a_right_diagnosis_is_paid_with_any_score_and_a_judge_reads_its_name(beside):
    judge = Fixed(Verdict(1.0))
    ending = ended(f"acute appendicitis {beside}", *TASK.key)
    assert earned(ending).total == earned(ending, judge=judge).total == pytest.approx(1.6)
    assert judge.asked[0].answer == TASK.reference


@pytest.mark.parametrize(
    "said", [*TO_THE_JUDGE, *(case["said"] for case in ADDRESSES if case["addresses"])]
)
def test_what_addresses_the_judge_is_refused_before_it_is_asked(said):
    judge = Fixed(Verdict(None, cause="judge_malformed"))
    assert addresses_the_judge(said)
    assert earned(ended(said, *TASK.key), judge=judge).total == 0
    assert earned(ended(said, *TASK.key)).total == 0
    assert not judge.asked


def test_words_to_the_judge_in_the_name_of_an_examination_are_not_shown_to_it():
    """A name that the policy made up is its own words; the record's name is kept."""
    judge = Fixed(Verdict(None, cause="judge_malformed"))
    episode = ended("appendicitis", TASK.key[0])
    for name in TO_THE_JUDGE:
        order = Order("unknown", name, "to see")
        episode.events.insert(0, Exchange(order, Result(name, "as it is", "recorded")))
    earned(episode, judge=judge)
    [case] = judge.asked
    assert case.context == [own_name(TASK.key[0])]
    assert (case.gold or {})["orders"] == 1 + len(TO_THE_JUDGE)


@pytest.mark.parametrize(("reply", "paid"), cases_of(__file__, "extracted_exams"))
@pytest.mark.usefixtures("no_waiting")
def test_an_llm_answers_by_exact_words_and_capped_counts(llm, reply, paid):
    llm.answer = lambda body: reply
    judge = LLMJudge(WORDS, "openai/stand-in", llm.url, "key", 20.0)
    reward = earned(ended("inflammation of the gut", TASK.key[0]), judge=judge)
    assert reward.unscored == (None if paid else "judge_malformed")
    terms = {"format": 0.1, "diagnosis": paid[0], "examinations": paid[1]} if paid else {}
    assert reward.terms == pytest.approx(terms)
