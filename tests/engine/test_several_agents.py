"""One policy for two agents, on the real engine: whose tasks were played, and how many of each.

Keeps of docs/training.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.runs import Run

pytestmark = [pytest.mark.engine, pytest.mark.nightly]


@pytest.fixture(scope="module")
def together(start: Callable[..., Run]) -> Run:
    run = start("--agents", "sql,diagnosis:3", "--ci-fast", program="train_agents.py")
    assert run.wait() == 0, run.output
    return run


def test_a_step_holds_each_agent_by_its_weight(together: Run) -> None:
    rows = together.lines("episodes.jsonl")
    trained = Counter(row["agent"] for row in rows if row["mode"] == "train")
    assert trained == {"sql": 2 * 4, "diagnosis": 6 * 4}
    assert {row["agent"] for row in rows if row["mode"] == "val"} == {"sql", "diagnosis"}
    groups = {(row["group"], row["agent"], row["id"]) for row in rows if row["mode"] == "train"}
    assert len(groups) == 8, "a group is of one task"
