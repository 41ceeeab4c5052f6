"""What an evaluation says of episodes: groups of a gain by form, kinds of failure.

Keeps of docs/code.md: the numbers of an evaluation are of what the page says.
"""

from __future__ import annotations

import pytest

from code_agent.agent import AGENT

RAN = {"kind": "code_execution", "status": "SUCCESS", "printed": "3"}
RAISED = {"kind": "code_execution", "status": "FAILED", "printed": "KeyError"}
SILENT = {"kind": "code_execution", "status": "SUCCESS"}
SUBMITTED = {"kind": "submitted", "status": ""}


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
