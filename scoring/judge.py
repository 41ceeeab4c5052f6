"""Choose the judge: the LLM if one is set, else the reward-model endpoint, else the agent's own."""

from typing import TypeVar

from common.settings import Settings, reveal
from scoring.case import Case, Judge
from scoring.llm_judge import JudgeWords, LLMJudge
from scoring.reward_model_judge import RewardModelJudge, load_scale

Own = TypeVar("Own", bound=Judge | None)

# What an agent whose own rules score can do without a judge.
WITHOUT_A_JUDGE = "set another, or unset TEACHER_MODEL and REWARD_MODEL_URL: rules then score"


def choose_judge(settings: Settings, words: JudgeWords, own: Own) -> Judge | Own:
    """Return the judge: TEACHER_MODEL, else REWARD_MODEL_URL, else the agent's own, or None.

    words: the agent's, for LLMs. Raises SettingsError: REWARD_SCALE names an unusable file.
    """
    seconds = settings.judge_timeout
    if settings.teacher_model:
        key = reveal(settings.teacher_api_key)
        return LLMJudge(words, settings.teacher_model, settings.teacher_base_url, key, seconds)
    if settings.reward_model_url:
        scale = load_scale(settings.reward_scale) if settings.reward_scale else None
        return RewardModelJudge(settings.reward_model_url, seconds, scale)
    return own


def identity_of(judge: Judge) -> str:
    """Return what tells this judge's scores from those of others, without secrets."""
    return str(getattr(judge, "identity", judge.name))


async def why_unusable(judge: Judge, known_case: Case) -> str | None:
    """Return None if the judge gives any score for a right answer, else why not."""
    verdict = await judge.judge(known_case)
    if verdict.score is not None:
        return None
    detail = getattr(judge, "last_failure", "")
    return f"the {judge.name} judge gave no score ({verdict.cause}{': ' if detail else ''}{detail})"
