"""Bundled cases as tasks, a row of DiagAgent's kind invented here, and a policy that says what a
list holds.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from diagnosis_agent.agent import AGENT
from diagnosis_agent.settings import DiagnosisSettings
from diagnosis_agent.task import DiagnosisTask, task_of

SETTINGS = DiagnosisSettings.model_construct(
    **{name: field.get_default() for name, field in DiagnosisSettings.model_fields.items()}
    | {"max_turns": 6}
)


@cache
def tasks(split: str = "test") -> tuple[DiagnosisTask, ...]:
    return tuple(task_of(row) for row in AGENT.rows(AGENT.splits[split]))


def task_with(condition: str) -> DiagnosisTask:
    return next(task for task in tasks() if task.condition == condition)


def reference_row() -> dict[str, Any]:
    """A row without results, as DiagAgent's files have them."""
    said = [
        {"role": "system", "content": "You are a doctor."},
        {"role": "user", "content": "54M, two days of flank pain"},
    ]
    key = ["CT Abdomen", "Urinalysis", "Stone Analysis of the Ureter"]
    return {
        "id": "r1",
        "prompt": said,
        "reward_model": {"style": "LLM", "ground_truth": "kidney stone"},
        "extra_info": {"index": 0, "key_exam_names": key},
    }
