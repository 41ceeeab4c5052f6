"""What an evaluation says of episodes: groups of a gain by form, kinds of failure.

Keeps of docs/code.md: the numbers of an evaluation are of what the page says.
"""

from __future__ import annotations

from typing import Any

import pytest

from code_agent.agent import AGENT
from code_agent.facts import group_of

RAN = {"kind": "code_execution", "status": "SUCCESS", "printed": "3"}
RAISED = {"kind": "code_execution", "status": "FAILED", "printed": "KeyError"}
SILENT = {"kind": "code_execution", "status": "SUCCESS"}
SUBMITTED = {"kind": "submitted", "status": ""}


@pytest.mark.parametrize(
    ("steps", "group"),
    [([RAN, SUBMITTED], 1), ([RAISED], 0), ([SILENT], 0), ([SUBMITTED], 0), ([], 0)],
)
def test_form_is_a_program_that_ran_and_printed(steps: list[dict[str, Any]], group: int) -> None:
    assert group_of({"steps": steps}) == group
    assert AGENT.showing.gain_groups({"steps": steps}) == {"gain_by_form": group}


@pytest.mark.parametrize(
    ("score", "answer", "facts", "kind"),
    [
        (1.0, "3", {}, "right"),
        (0.0, None, {"loops": 1.0}, "loop"),
        (0.0, None, {}, "nothing_handed_in"),
        (0.0, "4", {"runs": 0.0}, "no_program"),
        (0.0, "4", {"printed_a_value": 1.0}, "wrong_value"),
        (0.0, "4", {"printed_a_value": 0.0}, "only_errors"),
    ],
)
def test_kinds_of_failure(
    score: float, answer: str | None, facts: dict[str, float], kind: str
) -> None:
    record = {
        "score": score,
        "answer": answer,
        "facts": {"loops": 0.0, "runs": 1.0, "printed_a_value": 1.0} | facts,
    }
    assert AGENT.showing.failure(record) == kind
    assert kind in AGENT.showing.failures
