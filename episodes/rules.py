"""Environments that score by their own rules, or by a judge if the settings name one."""

from __future__ import annotations

from common.settings import Settings
from episodes.agent import Environment
from episodes.episode import ServiceError, Task
from episodes.turns import turns_of
from scoring.judge import WITHOUT_A_JUDGE, choose_judge, why_unusable
from scoring.llm_judge import JudgeWords


class RuledEnvironment(Environment):
    """`words` are the judge's. Raises SettingsError: REWARD_SCALE cannot be used."""

    def __init__(self, settings: Settings, words: JudgeWords) -> None:
        self.settings = settings
        self.words = words
        self.judge = choose_judge(settings, words, None)
        self.paid = self.judge is not None

    @property
    def judge_name(self) -> str | None:
        """The judge's name. An LLM's is its model's."""
        name = self.judge.name if self.judge else "rules"
        return self.settings.teacher_model if name == "llm" else name

    def turns(self, task: Task) -> int:
        """Return the most turns of a task."""
        return turns_of(task, self.settings)

    async def check(self) -> None:
        problem = await why_unusable(self.judge, self.words.known_case) if self.judge else None
        if problem:
            raise ServiceError(f"{problem}; start the judge, or {WITHOUT_A_JUDGE}")
