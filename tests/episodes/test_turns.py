"""The budget of a run, where it comes from, and budgets drawn by task."""

from argparse import ArgumentTypeError

import pytest

from common.settings import Settings
from consultation_agent.agent import AGENT as CONSULTATION
from episodes.episode import AgentError, Task
from episodes.turns import turns, turns_of, with_turns
from sql_agent.agent import AGENT as SQL

TASKS = [Task(id=f"case-{number}", question="?") for number in range(300)]


def settings(**given: int) -> Settings:
    return Settings(_env_file=None, **given)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("MAX_TURNS", "MIN_TURNS", "TURNS_SEED"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("text", "found"), [("6", (6, 6)), ("2-10", (2, 10)), ("4-4", (4, 4))])
def test_a_number_or_a_range(text, found):
    assert turns(text) == found


@pytest.mark.parametrize("text", ["0", "0-3", "5-2", "-3", "2-", "two", "", "1.5", "9" * 5000])
def test_what_is_neither(text):
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
def test_the_flag_then_the_settings_then_the_agent(given, flag, sql, consultation):
    for agent, expected in ((SQL, sql), (CONSULTATION, consultation)):
        found = with_turns(agent, settings(**given), flag)
        assert (found.min_turns, found.max_turns) == expected
        again = with_turns(agent, found)
        assert (again.min_turns, again.max_turns) == expected


def test_fewer_than_the_most_is_asked_for():
    with pytest.raises(AgentError, match=r"MIN_TURNS=5 .* 3"):
        with_turns(SQL, settings(min_turns=5))


def test_a_drawn_budget_is_the_task_s_and_changes_with_the_seed():
    one, other = (settings(min_turns=2, max_turns=10, turns_seed=seed) for seed in (0, 1))
    drawn = [turns_of(task, one) for task in TASKS]
    assert drawn == [turns_of(task, one) for task in TASKS]
    assert set(drawn) == set(range(2, 11))
    assert drawn != [turns_of(task, other) for task in TASKS]
    assert turns_of(Task(id="own", question="?", max_turns=12), one) == 12
