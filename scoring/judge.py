"""Which judge scores the answers: the LLM if one is set, else the reward-model endpoint, else the offline judge.

    from scoring.judge import Case, choose_judge
    verdict = await choose_judge(load_settings(), WORDS).judge(Case(question, answer, reference))

`python train_sql_agent.py` asks `why_unusable` once before anything expensive starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from common.llm import reveal
from common.settings import SettingsError
from scoring.case import Case, Judge, Usage, Verdict
from scoring.judge_prompt import JudgeWords
from scoring.llm_judge import LLMJudge
from scoring.reference.offline import ReferenceJudge
from scoring.reward_model import RewardModelJudge
from scoring.scale import ScaleError, load_scale
from scoring.second_judge import SecondOpinion

if TYPE_CHECKING:
    from common.settings import Settings

__all__ = [
    "Case",
    "Judge",
    "JudgeWords",
    "LLMJudge",
    "ReferenceJudge",
    "RewardModelJudge",
    "SecondOpinion",
    "Usage",
    "Verdict",
    "choose_judge",
    "why_unusable",
]


def choose_judge(settings: Settings, words: JudgeWords) -> Judge:
    """The judge the settings ask for: TEACHER_MODEL, else REWARD_MODEL_URL, else the reference judge.

    `words` are the agent's, for judges that are LLMs. With SECOND_JUDGE_MODEL a share of the answers is shown to a
    second one.

    Raises:
        SettingsError: REWARD_SCALE names a file that cannot be used.
    """
    first = _first(settings, words)
    if not settings.second_judge_model:
        return first
    key = reveal(settings.second_judge_api_key)
    second = LLMJudge(words, settings.second_judge_model, settings.second_judge_base_url, key, settings.judge_timeout)
    return SecondOpinion(first, second, settings.second_judge_share)


def _first(settings: Settings, words: JudgeWords) -> Judge:
    if settings.teacher_model:
        key = reveal(settings.teacher_api_key)
        return LLMJudge(words, settings.teacher_model, settings.teacher_base_url, key, settings.judge_timeout)
    if settings.reward_model_url:
        try:
            scale = load_scale(settings.reward_scale) if settings.reward_scale else None
        except ScaleError as error:
            raise SettingsError(f"REWARD_SCALE: {error}") from None
        return RewardModelJudge(settings.reward_model_url, settings.judge_timeout, scale)
    return ReferenceJudge()


async def why_unusable(judge: Judge, known_case: Case) -> str | None:
    """None when the judge gives a score for an answer known to be right; else what was seen, in words.

    Every judge of a `SecondOpinion` is asked. The score itself is not judged: that is what canaries are for.
    """
    judges = [judge.first, judge.second] if isinstance(judge, SecondOpinion) else [judge]
    for asked in judges:
        verdict = await asked.judge(known_case)
        if verdict.score is None:
            detail = getattr(asked, "last_failure", "")
            return f"the {asked.name} judge gave no score ({verdict.cause}{': ' if detail else ''}{detail})"
    return None
