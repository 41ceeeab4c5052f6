"""Bundled cases as tasks, and rows of the reference's kind, invented here."""

from __future__ import annotations

from functools import cache
from typing import Any

from consultation_agent.agent import AGENT
from consultation_agent.settings import ConsultationSettings
from consultation_agent.task import ConsultationTask, task_of

SETTINGS = ConsultationSettings.model_construct(
    **{name: field.get_default() for name, field in ConsultationSettings.model_fields.items()}
    | {"max_turns": 4}
)


@cache
def tasks(split: str = "test") -> tuple[ConsultationTask, ...]:
    return tuple(task_of(row) for row in AGENT.rows(AGENT.splits[split]))


def task_with(condition: str) -> ConsultationTask:
    return next(task for task in tasks() if task.condition == condition)


def reference_row(**model: Any) -> dict[str, Any]:
    """A row without facets, in English, as DoctorAgent-RL's files have them."""
    said = "Patient's description: My ankle is swollen (male, 30 years old)\nDecide next action:\nAlways output ...\n"
    return {
        "id": "r1",
        "prompt": [
            {"role": "system", "content": "You are a doctor."},
            {"role": "user", "content": said},
        ],
        "reward_model": {
            "ground_truth": {
                "diagnosis": "This is a sprained ankle.",
                "recommendation": "Rest it and use ice.",
            },
            "patient_information": [
                {
                    "doctor_question": ["Hello,", "did you twist it?"],
                    "patient_response": ["Yes,", "on the stairs."],
                },
                {
                    "doctor_question": ["Can you walk on it?"],
                    "patient_response": ["Only with a stick."],
                },
            ],
            "enhanced_description": "I twisted it on Monday. I take no medicines at all. The swelling is blue.",
            **model,
        },
        "extra_info": {"index": 7},
    }
