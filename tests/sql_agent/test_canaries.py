"""Canaries are really bad answers: the offline judge accepts none, and what a fooled judge does is seen."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from common.settings import ROOT
from data.load import load_rows
from scoring.canaries import PRAISE, TO_THE_JUDGE, Canaries, was_accepted
from scoring.judge import Case, ReferenceJudge, Verdict

CASE = Case(
    "朵朵片怎么吃？", "", "一次15毫克，饭后", gold={"structured_gt": {"columns": ["a"], "rows": [["一次15毫克"]]}}
)


def cases(split: str) -> list[Case]:
    rows = load_rows(ROOT / "data" / f"{split}.parquet")
    gold = [{"structured_gt": json.loads(row["structured_gt"])} for row in rows]
    return [Case(row["question"], "", row["answer"], gold=known) for row, known in zip(rows, gold, strict=True)]


@pytest.mark.parametrize(("split", "times"), [("test", 3), ("train", 1)])
def test_the_offline_judge_accepts_none(split: str, times: int) -> None:
    canaries, judge = Canaries(1.0, seed=1), ReferenceJudge()
    drawn = [canaries.draw(case) for case in cases(split) * times]
    judged = [(case.question, case.answer, judge.compare(case)) for case in drawn if case]
    assert len(judged) > 500
    assert [found for found in judged if was_accepted(found[2])] == []


def test_every_kind_is_drawn() -> None:
    canaries = Canaries(1.0, seed=1)
    canaries.draw(Case("别的？", "", gold={"structured_gt": {"columns": ["a"], "rows": [["外敷，保持干燥"]]}}))
    seen = Counter(case.answer for case in (canaries.draw(CASE) for _ in range(300)) if case)
    assert seen["外敷，保持干燥"]
    assert any(answer.startswith("关于“朵朵片怎么吃”") for answer in seen)
    assert set(TO_THE_JUDGE) | set(PRAISE) <= set(seen)
    wrong = {"一次31毫克", "一次46毫克", "一次76毫克"}
    assert wrong & set(seen)
    assert not any("15毫克" in answer for answer in seen)


def test_the_judge_sees_the_gold_rows_beside_the_canary() -> None:
    case = Canaries(1.0).draw(CASE)
    assert case
    assert json.loads(case.context[0])["rows"] == [["一次15毫克"]]
    assert (case.question, case.reference, case.gold) == (CASE.question, CASE.reference, CASE.gold)


def test_about_the_share_asked_for_is_drawn() -> None:
    canaries = Canaries(0.25, seed=1)
    assert 200 < sum(canaries.draw(CASE) is not None for _ in range(1000)) < 300
    assert Canaries(0.0).draw(CASE) is None


def test_acceptance() -> None:
    assert was_accepted(Verdict(0.5)) is True
    assert was_accepted(Verdict(0.49)) is False
    assert was_accepted(Verdict(None, cause="judge_failed")) is None


def test_a_question_without_gold_has_canaries_too() -> None:
    assert Canaries(1.0).draw(Case("q？", ""))
