"""The second judge: what it measures, whom it sees, and that it changes nothing.

Keeps of docs/rewards.md, "Judges": a second judge measures and never changes a reward.
"""

from __future__ import annotations

import asyncio

import pytest

from common.llm import Usage
from common.settings import Settings
from scoring.judge import (
    Case,
    LLMJudge,
    RewardModelJudge,
    SecondOpinion,
    Verdict,
    choose_judge,
)
from scoring.scale import LogisticScale
from sql_agent.judge.reference import ReferenceJudge
from sql_agent.judge_words import WORDS
from tests.judges import Fixed


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


def test_a_failing_second_judge_leaves_the_first_s_verdict(server):
    server.replies = [(401, "{}")]
    case = Case("怎么保存？", "密封", "密封")
    both = asyncio.run(
        SecondOpinion(ReferenceJudge(), RewardModelJudge(server.url, 20.0), 1.0).judge(case)
    )
    assert (both.cause, both.checks) == (None, {})


def test_what_both_took_is_counted_and_only_the_first_s_cache() -> None:
    """A cost without the second's would be reported as what a run has cost."""
    first = Fixed(Verdict(0.5, usage=Usage(0, cached=1)))
    second = Fixed(Verdict(0.25, usage=Usage(3, cached=1, prompt_tokens=7, cost_usd=0.5)))
    both = SecondOpinion(first, second, 1.0)
    verdict = asyncio.run(both.judge(Case("q", "a")))
    assert verdict.usage == Usage(3, cached=1, prompt_tokens=7, cost_usd=0.5)
    assert verdict.checks == {"second_judge_difference": 0.25}
    assert first.verdict.usage == Usage(0, cached=1), "and is not changed where it is kept"
    assert first.asked == second.asked == [Case("q", "a")]
    assert both.name == "fixed"


@pytest.mark.parametrize(
    "first",
    [
        Verdict(None, cause="judge_failed", usage=Usage(4)),
        Verdict(0.0, {"degenerate": 1.0}, usage=Usage(4)),
    ],
    ids=["failed", "degenerate"],
)
def test_where_the_first_did_not_judge_there_is_no_difference(first: Verdict) -> None:
    second = Fixed(Verdict(1.0, usage=Usage(3)))
    verdict = asyncio.run(SecondOpinion(Fixed(first), second, 1.0).judge(Case("q", "a")))
    assert (verdict, verdict.checks, verdict.usage.calls) == (first, {}, 7)


def test_whether_a_case_is_shared_is_decided_by_its_content() -> None:
    case = Case("q", "a")
    place = int(case.key[:8], 16) / 16**8
    for share, shown in ((place, 0), (place + 2**-33, 1)):
        second = Fixed(Verdict(1.0))
        asyncio.run(SecondOpinion(Fixed(Verdict(1.0)), second, share).judge(case))
        assert len(second.asked) == shown


def test_the_settings_choose_the_second_judge_and_the_scale(tmp_path) -> None:
    told = {"model": "openai/s", "api_key": "k2", "base_url": "http://s", "share": 0.25}
    settings = Settings(
        _env_file=None,
        judge_timeout=9,
        **{f"second_judge_{name}": value for name, value in told.items()},
    )
    judge = choose_judge(settings, WORDS, ReferenceJudge())
    assert isinstance(judge, SecondOpinion)
    assert isinstance(judge.first, ReferenceJudge)
    assert isinstance(judge.second, LLMJudge)
    assert (judge.share, judge.second.words) == (0.25, WORDS)
    client, provider = judge.second.client, judge.second.client.provider
    assert (client.model, client.patience.budget) == ("openai/s", 9)
    assert (provider.base_url, provider.api_key) == ("http://s", "k2")
    path, scale = tmp_path / "scale.json", LogisticScale(center=0.5, scale=2.0)
    path.write_text(scale.model_dump_json())
    settings = Settings(_env_file=None, reward_model_url="http://r", reward_scale=path)
    assert choose_judge(settings, WORDS, None).scale == scale
