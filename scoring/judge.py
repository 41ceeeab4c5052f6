"""The choice of the judge: the LLM if one is set, else the reward-model endpoint, else what the
agent has itself.

    from scoring.judge import Case, choose_judge
    judge = choose_judge(load_settings(), WORDS, ReferenceJudge())
    verdict = await judge.judge(Case(question, answer, reference))

`python train_sql_agent.py` asks `why_unusable` once before anything expensive starts.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TypeVar

from common.llm import reveal
from common.settings import Settings
from scoring.case import Case, Judge, Verdict
from scoring.llm_judge import JudgeWords, LLMJudge
from scoring.reward_model_judge import RewardModelJudge
from scoring.scale import load_scale

Own = TypeVar("Own", bound=Judge | None)

# What an agent whose own rules score can do without a judge.
WITHOUT_A_JUDGE = "set another, or unset TEACHER_MODEL and REWARD_MODEL_URL: rules then score"


class SecondOpinion:
    """The first judge's verdicts; on a share of them the absolute difference to the second's score
    as a check.

    It never changes a reward. Which cases are shared depends on their content alone, so a repeated
    run asks for the same ones.
    """

    def __init__(self, first: Judge, second: Judge, share: float) -> None:
        self.first, self.second, self.share = first, second, share
        self.name = first.name

    async def judge(self, case: Case) -> Verdict:
        """Return the first judge's verdict, with its difference from the second judge's. Both are
        asked at the same time, for a share of the cases.
        """
        if int(case.key[:8], 16) >= self.share * 16**8:
            return await self.first.judge(case)
        first, second = await asyncio.gather(self.first.judge(case), self.second.judge(case))
        usage = replace(first.usage)
        usage.add(replace(second.usage, cached=0))
        if first.score is None or second.score is None or "degenerate" in first.parts:
            return replace(first, usage=usage)
        return replace(
            first, usage=usage, checks={"second_judge_difference": abs(first.score - second.score)}
        )


def choose_judge(settings: Settings, words: JudgeWords, own: Own) -> Judge | Own:
    """Return the judge that the settings name: TEACHER_MODEL, else REWARD_MODEL_URL, else the
    agent's own, which may be None. With SECOND_JUDGE_MODEL, a share of the answers goes to a second
    one, too.

    words: the agent's, for judges that are LLMs.

    Raises SettingsError: REWARD_SCALE names a file that cannot be used.
    """

    def llm(who: str) -> LLMJudge | None:
        model, url, key = (
            getattr(settings, f"{who}_{name}") for name in ("model", "base_url", "api_key")
        )
        return LLMJudge(words, model, url, reveal(key), settings.judge_timeout) if model else None

    first: Judge | Own = llm("teacher") or own
    if settings.reward_model_url and not settings.teacher_model:
        scale = load_scale(settings.reward_scale) if settings.reward_scale else None
        first = RewardModelJudge(settings.reward_model_url, settings.judge_timeout, scale)
    second = llm("second_judge")
    if first is None or second is None:
        return first
    return SecondOpinion(first, second, settings.second_judge_share)


async def why_unusable(judge: Judge, known_case: Case) -> str | None:
    """Return None if the judge gives any score for an answer known to be right, else the reason in
    words.

    Both judges of a `SecondOpinion` are asked. Canaries check whether scores are right; this does
    not.
    """
    judges = [judge.first, judge.second] if isinstance(judge, SecondOpinion) else [judge]
    for asked in judges:
        verdict = await asked.judge(known_case)
        if verdict.score is None:
            detail = getattr(asked, "last_failure", "")
            return (
                f"the {asked.name} judge gave no score "
                f"({verdict.cause}{': ' if detail else ''}{detail})"
            )
    return None
