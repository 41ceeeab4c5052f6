"""Rows of both kinds become tasks; what is no consultation is refused in one line."""

from __future__ import annotations

from typing import Any

import pytest

from consultation_agent.task import task_of
from episodes.episode import AgentError
from tests.consultation_agent.cases import reference_row


def without(row: dict[str, Any], *path: str) -> dict[str, Any]:
    inner = row
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return row


@pytest.mark.parametrize(
    "row",
    [
        without(reference_row(), "reward_model", "ground_truth"),
        without(reference_row(), "prompt"),
        reference_row() | {"prompt": [{"role": "system", "content": "x"}]},
        reference_row() | {"prompt": 3},
        reference_row(ground_truth={"diagnosis": None, "recommendation": "x"}),
        reference_row(patient_information=[{"doctor_question": 3, "patient_response": ["x"]}]),
        reference_row() | {"extra_info": {"condition": "no such"}},
        reference_row() | {"extra_info": {"facets": "{"}},
    ],
)
def test_what_is_no_consultation_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(AgentError, match="row 'r1'"):
        task_of(row)
