"""Which judge scores the answers: the LLM if one is set, else the reward-model endpoint, else the offline judge.

    from scoring.judge import Case, choose_judge
    verdict = await choose_judge(load_settings()).judge(Case(question, answer, reference))

`python train_sql_agent.py` asks `why_unusable` once before anything expensive starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from common.settings import SettingsError
from scoring.case import Case, Judge, Usage, Verdict
from scoring.llm_judge import LLMJudge
from scoring.reference.offline import ReferenceJudge
from scoring.reward_model import RewardModelJudge
from scoring.scale import ScaleError, load_scale
from scoring.second_judge import SecondOpinion

if TYPE_CHECKING:
    from pydantic import SecretStr

    from common.settings import Settings

__all__ = [
    "Case",
    "Judge",
    "LLMJudge",
    "ReferenceJudge",
    "RewardModelJudge",
    "SecondOpinion",
    "Usage",
    "Verdict",
    "choose_judge",
    "why_unusable",
]

KNOWN_CASE = Case(
    question="朵朵片怎么保存？",
    answer="密封，阴凉处保存",
    reference="朵朵片的贮藏方法：密封，阴凉处保存",
    gold={"structured_gt": {"columns": ["storage"], "rows": [["密封，阴凉处保存"]]}},
)
"""An invented question with its right answer, to see whether a judge is there."""


def choose_judge(settings: Settings) -> Judge:
    """The judge the settings ask for: TEACHER_MODEL, else REWARD_MODEL_URL, else the reference judge.

    With SECOND_JUDGE_MODEL a share of its answers is shown to a second one.

    Raises:
        SettingsError: REWARD_SCALE names a file that cannot be used.
    """
    first = _first(settings)
    if not settings.second_judge_model:
        return first
    key = _secret(settings.second_judge_api_key)
    second = LLMJudge(settings.second_judge_model, settings.second_judge_base_url, key, settings.judge_timeout)
    return SecondOpinion(first, second, settings.second_judge_share)


def _first(settings: Settings) -> Judge:
    if settings.teacher_model:
        key = _secret(settings.teacher_api_key)
        return LLMJudge(settings.teacher_model, settings.teacher_base_url, key, settings.judge_timeout)
    if settings.reward_model_url:
        try:
            scale = load_scale(settings.reward_scale) if settings.reward_scale else None
        except ScaleError as error:
            raise SettingsError(f"REWARD_SCALE: {error}") from None
        return RewardModelJudge(settings.reward_model_url, settings.judge_timeout, scale)
    return ReferenceJudge()


async def why_unusable(judge: Judge) -> str | None:
    """None when the judge gives a score for a known case; else what was seen, in words.

    Every judge of a `SecondOpinion` is asked. The score itself is not judged: that is what canaries are for.
    """
    judges = [judge.first, judge.second] if isinstance(judge, SecondOpinion) else [judge]
    for asked in judges:
        verdict = await asked.judge(KNOWN_CASE)
        if verdict.score is None:
            detail = getattr(asked, "last_failure", "")
            return f"the {asked.name} judge gave no score ({verdict.cause}{': ' if detail else ''}{detail})"
    return None


def _secret(key: SecretStr | None) -> str | None:
    return key.get_secret_value() if key else None
