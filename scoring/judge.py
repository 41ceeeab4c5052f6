"""Which judge scores the answers: the LLM if one is set, else the reward-model endpoint, else the offline judge.

from scoring.judge import Case, choose_judge
verdict = await choose_judge(load_settings()).judge(Case(question, answer, reference))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scoring.case import Case, Judge, Verdict
from scoring.reference import ReferenceJudge
from scoring.remote import LLMJudge, RewardModelJudge

if TYPE_CHECKING:
    from utils.settings import Settings

__all__ = ["Case", "Judge", "LLMJudge", "ReferenceJudge", "RewardModelJudge", "Verdict", "choose_judge"]


def choose_judge(settings: Settings) -> Judge:
    """The judge the settings ask for: TEACHER_MODEL, else REWARD_MODEL_URL, else the reference judge."""
    if settings.teacher_model:
        key = settings.teacher_api_key
        secret = key.get_secret_value() if key else None
        return LLMJudge(settings.teacher_model, settings.teacher_base_url, secret, settings.judge_timeout)
    if settings.reward_model_url:
        return RewardModelJudge(settings.reward_model_url, settings.judge_timeout)
    return ReferenceJudge()
