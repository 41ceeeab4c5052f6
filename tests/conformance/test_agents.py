"""What every agent keeps to: the checks of `episodes/conformance_checks.py` over every name in the
registry, and over the tests' own agent.

A new agent is covered by having a folder; an agent of another repository runs the same checks with
`python -m pytest -p episodes.conformance --agent NAME`.

Keeps of docs/agents.md: what a new agent is promised and must keep.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from common.settings import ROOT
from episodes import registry
from episodes.agent import Agent
from tests.digits_agent.agent import AGENT as DIGITS
from tests.runs import Run

pytest.register_assert_rewrite("episodes.conformance_checks")
from episodes.conformance_checks import *  # noqa: E402, F403 (the tests themselves)

registry.register(DIGITS)


@pytest.fixture(scope="module", params=registry.names())
def agent(request: pytest.FixtureRequest) -> Agent:
    return registry.get(request.param)


@pytest.mark.engine
@pytest.mark.parametrize(
    "name", [name for name in registry.names() if (ROOT / f"train_{name}_agent.py").is_file()]
)
def test_one_step_trains_on_the_real_engine(name: str, fast_run: Callable[[str], Run]) -> None:
    summary = fast_run(name).summary()
    assert summary["rollouts"]["finished"] > 0
    assert summary["rollouts"]["unscored"] == summary["rollouts"]["failed"] == 0
    assert summary["generated_tokens"] == summary["trained_tokens"]
    assert summary["weight_updates"] + summary["steps_without_signal"] == 1
