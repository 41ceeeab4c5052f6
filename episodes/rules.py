"""The common part of environments that score by rules of their own: a judge replaces the rules if
the settings name one.

class MyEnvironment(RuledEnvironment):
    def __init__(self, settings, options):
        super().__init__(settings, WORDS)
        self.judge, self.judge_name            # None and "rules" without one
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from common.settings import Settings
from episodes.agent import Environment, Judging, Record
from episodes.episode import ServiceError, Task
from scoring.judge import WITHOUT_A_JUDGE, choose_judge, why_unusable
from scoring.llm_judge import JudgeWords

JUDGED = ("diagnosis_by_rule", "diagnosis_by_judge", "diagnosis_agreement")
RIGHT_FROM = 0.5  # of a value of a diagnosis


class RuledEnvironment(Environment):
    """An environment that scores by its own rules, or by a judge. `words` are the judge's. Raises
    SettingsError: REWARD_SCALE cannot be used.
    """

    def __init__(self, settings: Settings, words: JudgeWords) -> None:
        self.settings, self.words = settings, words
        self.judge = choose_judge(settings, words, None)
        self.judging = Judging(paid=self.judge is not None, help=WITHOUT_A_JUDGE)

    @property
    def judge_name(self) -> str | None:
        """The judge's name; an LLM's is its model's."""
        name = self.judge.name if self.judge else "rules"
        return self.settings.teacher_model if name == "llm" else name

    def turns(self, task: Task) -> int:
        """Return the most turns of a task."""
        return task.max_turns or self.settings.max_turns

    async def check(self) -> None:
        problem = await why_unusable(self.judge, self.words.known_case) if self.judge else None
        if problem:
            raise ServiceError(f"{problem}; start the judge, or {WITHOUT_A_JUDGE}")


def beside_the_rule(rule: float, judged: float) -> dict[str, float]:
    """Return the measures of a diagnosis that a judge valued: by the rule, by the judge, and
    whether both call it right or both wrong.
    """
    same = (rule >= RIGHT_FROM) == (judged >= RIGHT_FROM)
    return dict(zip(JUDGED, (rule, judged, float(same)), strict=True))


def judged_diagnoses(records: Sequence[Record]) -> Mapping[str, Mapping[str, float | None]]:
    """Return the means of these measures, for an evaluation's table; None without a judge."""
    measured = [record["measures"] for record in records if JUDGED[0] in record["measures"]]
    means = {
        name.removeprefix("diagnosis_"): fmean(one[name] for one in measured) if measured else None
        for name in JUDGED
    }
    return {"diagnoses judged": means}
