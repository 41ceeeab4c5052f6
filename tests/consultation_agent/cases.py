"""Bundled cases as tasks, and rows of the reference's kind, invented here."""

from functools import cache
from typing import Any

from consultation_agent.agent import AGENT
from consultation_agent.settings import ConsultationSettings
from consultation_agent.task import ConsultationTask, task_of
from tests.corpora import cases_of

SETTINGS = ConsultationSettings.model_construct(max_turns=4)
ENVIRONMENT = AGENT.open(SETTINGS, {})


@cache
def tasks(split: str = "test") -> tuple[ConsultationTask, ...]:
    return tuple(task_of(row) for row in AGENT.rows(AGENT.splits[split]))


def task_with(condition: str) -> ConsultationTask:
    return next(task for task in tasks() if task.condition == condition)


def reference_row(**model: Any) -> dict[str, Any]:
    """A row without facets, in English, as DoctorAgent-RL's files have them."""
    [row] = cases_of(__file__, "reference_row")
    row["reward_model"] |= model
    return row
