"""Bundled cases as tasks, a row of DiagAgent's kind, and a policy that says what a list holds."""

from functools import cache
from typing import Any

from diagnosis_agent.agent import AGENT
from diagnosis_agent.settings import DiagnosisSettings
from diagnosis_agent.task import DiagnosisTask, task_of
from tests.corpora import cases_of

SETTINGS = DiagnosisSettings.model_construct(max_turns=6)
ENVIRONMENT = AGENT.open(SETTINGS, {})


@cache
def tasks(split: str = "test") -> tuple[DiagnosisTask, ...]:
    return tuple(task_of(row) for row in AGENT.rows(AGENT.splits[split]))


def task_with(condition: str) -> DiagnosisTask:
    return next(task for task in tasks() if task.condition == condition)


def reference_row() -> dict[str, Any]:
    """A row without results, as DiagAgent's files have them."""
    [row] = cases_of(__file__, "reference_row")
    return row
