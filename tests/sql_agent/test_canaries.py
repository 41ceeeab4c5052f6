"""Canaries are really bad answers: the offline judge accepts none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from episodes.agent import Episode
from episodes.lit_agent import ACCEPTED_FROM
from scoring.judge import Case, ReferenceJudge
from sql_agent.agent import AGENT
from sql_agent.canaries import PRAISE, TO_THE_JUDGE, Canaries
from sql_agent.reward import Query, case_of
from sql_agent.task import task_of

CASE = Case(
    "朵朵片怎么吃？", "", "一次15毫克，饭后", gold={"structured_gt": {"columns": ["a"], "rows": [["一次15毫克"]]}}
)


def cases(split: str) -> list[Case]:
    """With the gold rows as what the tool returned: the judge sees what is right beside the canary."""
    tasks = [task_of(row) for row in AGENT.rows(AGENT.splits[split])]
    return [case_of(task, Episode(events=Query.of_gold(task))) for task in tasks]


@pytest.mark.parametrize(("split", "times"), [("test", 3), ("train", 1)])
def test_the_offline_judge_accepts_none(split: str, times: int) -> None:
    canaries, judge, random = Canaries(), ReferenceJudge(), Random(1)
    drawn = [replace(case, answer=canaries.draw(case, random)) for case in cases(split) * times]
    scores = [(case.question, case.answer, judge.compare(case).score) for case in drawn]
    assert len(scores) > 500
    assert [found for found in scores if found[2] is None or found[2] >= ACCEPTED_FROM] == []


def test_every_kind_is_drawn() -> None:
    canaries, random = Canaries(), Random(1)
    canaries.draw(Case("别的？", "", gold={"structured_gt": {"columns": ["a"], "rows": [["外敷，保持干燥"]]}}), random)
    seen = Counter(canaries.draw(CASE, random) for _ in range(300))
    assert seen["外敷，保持干燥"]
    assert any(answer.startswith("关于“朵朵片怎么吃”") for answer in seen)
    assert set(TO_THE_JUDGE) | set(PRAISE) <= set(seen)
    assert {"一次31毫克", "一次46毫克", "一次76毫克"} & set(seen)
    assert not any("15毫克" in answer for answer in seen)


def test_a_question_without_gold_has_canaries_too() -> None:
    assert Canaries().draw(Case("q？", ""), Random(1))
