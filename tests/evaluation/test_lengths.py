"""`evaluation.lengths` says what `Sizes` must hold, and what is missing: docs/agents.md."""

from __future__ import annotations

import pytest

from episodes import registry
from evaluation import lengths


def test_a_prompt_a_response_and_each_reply_are_measured() -> None:
    roles = ("system", "user", "assistant", "user", "assistant")
    messages = [{"role": role, "content": ""} for role in roles]
    lengths_found = lengths.lengths_of(messages, lambda given: 10 * len(given))
    assert lengths_found == {"prompt": [20], "response": [30], "reply": [10, 10]}
    silent = lengths.lengths_of(messages[:2], lambda given: 10 * len(given))
    assert silent == {"prompt": [20], "response": [], "reply": []}


def test_measured_lengths_stand_beside_what_a_tiny_model_is_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    agent = registry.get("diagnosis")
    assert lengths.main(["diagnosis", "--n", "2"]) == 0
    cells = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    given = {cell[0]: cell[-1] for cell in cells}
    for name in ("prompt", "response", "reply"):
        assert given[name] == str(getattr(agent.sizes("cpu"), name))
    assert agent.sizes("cpu") != agent.sizes("cuda")
