"""Canaries are really bad answers; the offline judge hardly ever accepts one."""

from collections import Counter
from random import Random

import pytest

from episodes.agent import accepted_from
from scoring.judge import Case
from sql_agent.agent import AGENT
from sql_agent.canaries import DENIED, NOTHING_FOUND, bad_answers, honest_answers, is_nothing
from sql_agent.environment import SqlEnvironment
from sql_agent.judge.reference import ReferenceJudge
from sql_agent.reward import case_of
from sql_agent.settings import SqlSettings
from sql_agent.task import task_of

DOSAGE = {"structured_gt": {"columns": ["dosage"], "rows": [["一次15毫克"]]}}
CASE = Case(
    "朵朵片怎么吃？", "", "朵朵片的用法用量：一次15毫克", ['{"rows":[["一次15毫克"]]}'], DOSAGE
)
NOTHING = {"structured_gt": {"columns": ["dosage"], "rows": []}}
EMPTY = Case("花花片怎么吃？", "", "数据库中没有找到花花片。", [], NOTHING)
COLUMN = ["外敷，每晚1次", "外敷，饭前", "含服", "吸入，睡前", "含服，必要时", "一次15毫克"]


def drawn(case: Case = CASE, names: tuple[str, ...] = ("朵朵片",), seed: int = 1) -> dict[str, str]:
    return bad_answers(case, names, lambda _: COLUMN, Random(seed))


@pytest.mark.system
@pytest.mark.parametrize(("split", "every"), [("test", 1), ("train", 3)])
def test_the_offline_judge_accepts_too_few_to_warn(split, every):
    environment = SqlEnvironment(SqlSettings(_env_file=None))
    judge, random = ReferenceJudge(), Random(1)
    judged, accepted = Counter[str](), []
    for row in AGENT.rows(AGENT.splits[split])[::every]:
        task = task_of(row)
        for kind, episode in environment.dishonest(task, random).items():
            score = judge.compare(case_of(task, episode)).score
            judged[kind] += 1
            if score is None or score >= accepted_from(kind):
                accepted.append((kind, task.question, episode.answer, score))
    assert len(judged) == 13, "every kind was tried"
    assert len(accepted) <= 0.01 * judged.total(), accepted
    kinds = Counter(kind for kind, *_ in accepted)
    assert all(kinds[kind] <= 0.05 * judged[kind] for kind in judged), accepted


def test_the_near_ones_differ_from_the_right_one_in_one_thing():
    value = "一次15毫克，饭后服用"
    gold = {"structured_gt": {"columns": ["dosage"], "rows": [[value]]}}
    case = Case("朵朵片怎么吃？", "", f"朵朵片的用法用量：{value}", [], gold)
    found = drawn(case)
    assert found["the same field of another row"] in COLUMN
    assert found["denied behind"].startswith(f"{value}。")
    assert found["denied behind"].removeprefix(f"{value}。") in DENIED
    assert sum(text in found["the rows retold"] for text in COLUMN) >= 5
    assert "the same field of another row" not in drawn(EMPTY, ("花花片",))


def test_what_the_database_lacks_may_be_said_to_be_missing():
    assert is_nothing(EMPTY)
    assert honest_answers(EMPTY) == {"reference answer": EMPTY.reference}
    found = drawn(EMPTY, ("花花片",))
    assert not {"nothing found", "said of another", "wrong numbers"} & found.keys()
    assert drawn()["nothing found"] == NOTHING_FOUND
    counted = Case(
        "几种？", "", "共0种。", gold={"structured_gt": {"columns": ["count"], "rows": [[0]]}}
    )
    assert not is_nothing(counted)
