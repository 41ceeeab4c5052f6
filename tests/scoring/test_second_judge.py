"""The second judge: what it measures, whom it sees, and that it changes nothing.

Keeps of docs/rewards.md, "Judges": a second judge measures and never changes a reward.
"""

from __future__ import annotations

import asyncio

import pytest

from scoring.judge import Case, ReferenceJudge, RewardModelJudge, SecondOpinion


def test_a_second_judge_measures_and_changes_nothing(server):
    server.replies = [(200, '{"score": 0.75}')]
    gold = {"structured_gt": {"columns": ["a"], "rows": [["密封保存"]]}}
    case = Case("怎么保存？", "密封保存", gold=gold)
    first = ReferenceJudge()
    alone = asyncio.run(first.judge(case))
    both = asyncio.run(SecondOpinion(first, RewardModelJudge(server.url, 20.0), 1.0).judge(case))
    assert both == alone
    assert both.checks == {"second_judge_difference": pytest.approx(0.25)}
    assert both.usage.calls == 1
    none = asyncio.run(SecondOpinion(first, RewardModelJudge(server.url, 20.0), 0.0).judge(case))
    assert (none.checks, none.usage.calls) == ({}, 0)


def test_about_the_share_asked_for_is_shown_to_the_second_judge():
    judge = SecondOpinion(ReferenceJudge(), ReferenceJudge(), 0.05)

    async def shown():
        cases = [Case("q", f"答案{number}", "密封") for number in range(2000)]
        return [case for case in cases if (await judge.judge(case)).checks]

    assert 60 <= len(asyncio.run(shown())) <= 140


def test_a_failing_second_judge_leaves_the_first_s_verdict(server):
    server.replies = [(401, "{}")]
    case = Case("怎么保存？", "密封", "密封")
    both = asyncio.run(SecondOpinion(ReferenceJudge(), RewardModelJudge(server.url, 20.0), 1.0).judge(case))
    assert (both.cause, both.checks) == (None, {})
