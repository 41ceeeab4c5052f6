"""The budget of a run, where it comes from, and budgets drawn by task.

Keeps of docs/agents.md, "Budgets": a task's budget is drawn once and is the same for its whole
group.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from common.settings import Settings
from consultation_agent.agent import AGENT as CONSULTATION
from episodes import registry
from episodes.episode import AgentError
from episodes.turns import drawn_turns, turns, with_turns
from sql_agent.agent import AGENT as SQL

TASKS = [f"case-{number}" for number in range(300)]


def settings(**given: int) -> Settings:
    return Settings(_env_file=None, **given)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_TURNS", "MIN_TURNS", "TURNS_SEED"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("text", "found"), [("6", (6, 6)), ("2-10", (2, 10)), ("4-4", (4, 4))])
def test_a_number_or_a_range(text: str, found: tuple[int, int]) -> None:
    assert turns(text) == found


@pytest.mark.parametrize("text", ["0", "0-3", "5-2", "-3", "2-", "two", "", "1.5", "9" * 5000])
def test_what_is_neither(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="2-10"):
        turns(text)


@pytest.mark.parametrize(
    ("given", "flag", "sql", "consultation"),
    [
        ({}, None, (3, 3), (6, 6)),
        ({"max_turns": 4}, None, (4, 4), (4, 4)),
        ({"min_turns": 3}, None, (3, 3), (3, 6)),
        ({"max_turns": 4, "min_turns": 2}, (5, 5), (5, 5), (5, 5)),
    ],
)
def test_the_flag_then_the_settings_then_the_agent(
    given: dict[str, int],
    flag: tuple[int, int] | None,
    sql: tuple[int, int],
    consultation: tuple[int, int],
) -> None:
    for agent, expected in ((SQL, sql), (CONSULTATION, consultation)):
        found = with_turns(agent, settings(**given), flag)
        assert (found.min_turns, found.max_turns) == expected
        again = with_turns(agent, found)
        assert (again.min_turns, again.max_turns) == expected


def test_fewer_than_the_most_is_asked_for() -> None:
    with pytest.raises(AgentError, match=r"MIN_TURNS=5 .* 3"):
        with_turns(SQL, settings(min_turns=5))


def test_a_drawn_budget_is_the_tasks_and_changes_with_the_seed() -> None:
    one, other = (settings(min_turns=2, max_turns=10, turns_seed=seed) for seed in (0, 1))
    drawn = [drawn_turns(one, name) for name in TASKS]
    assert drawn == [drawn_turns(one, name) for name in TASKS]
    assert set(drawn) == set(range(2, 11))
    assert drawn != [drawn_turns(other, name) for name in TASKS]


@pytest.mark.parametrize(
    "name", [name for name in registry.names() if registry.get(name).draws_turns]
)
def test_a_drawn_budget_is_that_of_every_sample_of_a_task(name: str) -> None:
    agent = registry.get(name)
    drawn = settings(min_turns=2, max_turns=5)
    rows = agent.rows(agent.splits["val"])[:24]
    budgets = [agent.task(row, drawn).max_turns for row in rows]
    assert set(budgets) == {2, 3, 4, 5}
    assert budgets == [agent.task(row, drawn).max_turns for row in rows]
    assert {agent.task(row, settings()).max_turns for row in rows} == {None}


def test_a_range_is_for_agents_with_budgets_by_task() -> None:
    with pytest.raises(AgentError, match="--max-turns 2-5: the sql agent"):
        with_turns(SQL, settings(), (2, 5))
    with pytest.raises(AgentError, match="MIN_TURNS to MAX_TURNS 2-3: the sql agent"):
        with_turns(SQL, settings(min_turns=2))
