"""One policy for two agents, on the real engine: whose tasks were played, what each is counted as.

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


def test_every_agent_has_its_own_budget_and_numbers(together: Run) -> None:
    rows = together.lines("episodes.jsonl")
    assert max(row["turns"] for row in rows if row["agent"] == "sql") <= 3
    assert max(row["turns"] for row in rows if row["agent"] == "diagnosis") <= 6
    summary = together.summary()
    assert {name: found["rollouts"]["finished"] for name, found in summary["agents"].items()} == {
        "sql": 8,
        "diagnosis": 24,
    }
    assert summary["generated_tokens"] == summary["trained_tokens"] > 0
    assert summary["rollouts"] == {"finished": 32, "failed": 0, "unscored": 0}
    [step] = together.steps()
    assert step["episodes/sql/rollouts"] == 8
    assert together.alive() == []
