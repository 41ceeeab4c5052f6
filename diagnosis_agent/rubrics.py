"""Weighted criteria of single cases, which TEACHER_MODEL scores in evaluations: --rubrics FILE.

FILE is JSON: {"case-0001": [{"criterion": "orders an ECG first", "weight": 2}, ...], ...}.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from common.settings import Settings, reveal
from diagnosis_agent.judge_words import RUBRIC_WORDS
from diagnosis_agent.task import DiagnosisTask
from episodes.episode import AgentError, Episode
from scoring.case import Case, Verdict
from scoring.llm_judge import JudgeWords, LLMJudge


class Criterion(BaseModel):
    """What a work-up should do, and how much that counts."""

    model_config = ConfigDict(extra="forbid")
    criterion: Annotated[str, Field(min_length=1)]
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0


FORM = TypeAdapter(dict[str, Annotated[list[Criterion], Field(min_length=1)]])


class Rubrics:
    """A file's rubrics. Raises AgentError: unreadable, another form, or no TEACHER_MODEL."""

    def __init__(self, path: Path, settings: Settings) -> None:
        if not settings.teacher_model:
            raise AgentError(f"--rubrics {path} needs a judge; set TEACHER_MODEL")
        try:
            self.by_case = FORM.validate_python(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, ValidationError) as error:
            seen = " ".join(str(error).split())[:200]
            raise AgentError(
                f"--rubrics {path}: {seen}; expected {{id: [{{criterion, weight}}, ..]}}"
            ) from None
        self.digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
        self.settings = settings
        self.judge = cache(self._judge)

    async def verdict(self, task: DiagnosisTask, episode: Episode) -> Verdict | None:
        """Return the verdict by the case's rubrics, or None if it has none."""
        if task.id not in self.by_case:
            return None
        said = [message for message in episode.messages if message["role"] != "system"]
        turns = "\n".join(f"{message['role']}: {message['content']}" for message in said)
        return await self.judge(task.id).judge(Case(task.question, turns, task.reference))

    def _judge(self, case: str) -> LLMJudge:
        criteria = self.by_case[case]
        settings = self.settings
        total = sum(one.weight for one in criteria)
        weights = {f"met_{number}": one.weight / total for number, one in enumerate(criteria, 1)}
        listed = zip(weights, criteria, strict=True)
        asked = "\n".join(f"{name}: {one.criterion}" for name, one in listed)

        def material(of: Case) -> dict[str, str | None]:
            return {"true diagnosis": of.reference, "criteria": asked, "work-up": of.answer}

        nothing = Case("", "")
        words = JudgeWords(**RUBRIC_WORDS, weights=weights, material=material, known_case=nothing)
        url = settings.teacher_base_url
        key = reveal(settings.teacher_api_key)
        return LLMJudge(words, str(settings.teacher_model), url, key, settings.judge_timeout)
