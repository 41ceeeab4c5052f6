"""Several agents as one, for training: whose row it is decides everything else."""

import asyncio
import pickle
from contextlib import closing
from pathlib import Path
from random import Random

import orjson
import pytest

from common.settings import Settings
from episodes import registry
from episodes.agent import accepted_from
from episodes.episode import AgentError
from episodes.joint import WHOSE, environment_of
from episodes.play_and_score import play
from episodes.script import Script
from tests.digits_agent.agent import AGENT as DIGITS
from training.start.command import weights

SETTINGS = Settings.model_construct().under({"max_turns": 6, "min_turns": 6})


@pytest.fixture(scope="module")
def agent():
    return registry.joined({"sql": 1.0, "diagnosis": 2.0})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sql,diagnosis", {"sql": 1.0, "diagnosis": 1.0}),
        ("sql,diagnosis:2", {"sql": 1.0, "diagnosis": 2.0}),
        (" sql:.5 , code:3", {"sql": 0.5, "code": 3.0}),
    ],
)
def test_weights_stand_behind_a_colon(text, found):
    assert weights(text) == found


@pytest.mark.parametrize("text", ["sql,sql:2", "sql:0", "sql:nan", "sql:many", "sql,"])
def test_other_weights_are_refused(text):
    with pytest.raises(AgentError):
        weights(text)


def test_one_agent_or_one_that_there_is_not_is_refused():
    with pytest.raises(AgentError, match="two agents"):
        registry.joined({"sql": 1.0})
    with pytest.raises(AgentError, match="sqll"):
        registry.joined({"sql": 1.0, "sqll": 1.0})


def test_it_is_found_by_its_name_and_travels(agent):
    assert agent.name == "diagnosis+sql"
    assert registry.get("diagnosis+sql").name == agent.name
    assert pickle.loads(pickle.dumps(agent)).name == agent.name
    assert registry.training_command(agent.name)[:2] == ["train_agents.py", "--agents"]


def test_files_are_given_by_agent(agent, tmp_path):
    sql, diagnosis = (agent.members[name].splits["val"] for name in ("sql", "diagnosis"))
    given = agent.rows(Path(f"diagnosis={diagnosis},sql={sql}"))
    assert len(given) == len(agent.rows(agent.splits["val"]))
    with pytest.raises(AgentError, match="diagnosis"):
        agent.rows(Path(f"sql={sql}"))
    with pytest.raises(AgentError, match=sql.name):
        agent.rows(sql)
    written = tmp_path / "val.jsonl"
    written.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in given))
    assert agent.rows(written) == given
    written.write_text('{"id": "a", "question": "?"}\n')
    with pytest.raises(AgentError, match="sql, diagnosis"):
        agent.rows(written)


def test_every_task_has_its_own_agents_budget(agent):
    rows = agent.rows(agent.splits["val"])[:2]
    budgets = {row[WHOSE]: agent.task(row, SETTINGS).max_turns for row in rows}
    assert budgets == {"sql": 3, "diagnosis": 6}
    fewer = SETTINGS.under({"max_turns": 2, "min_turns": 2})
    assert [agent.task(row, fewer).max_turns for row in rows] == [2, 2]
    drawn = SETTINGS.under({"max_turns": 6, "min_turns": 2})
    rows = agent.rows(agent.splits["val"])
    budgets = sorted({(row[WHOSE], agent.task(row, drawn).max_turns) for row in rows})
    ranges = [*(("diagnosis", turns) for turns in range(2, 7)), ("sql", 2), ("sql", 3)]
    assert budgets == ranges


def test_gold_and_dishonest_episodes_are_worth_what_their_own_agent_says(agent):
    with closing(agent.open(SETTINGS, {})) as environment:
        for row in agent.rows(agent.splits["val"])[:2]:
            task = agent.task(row, SETTINGS)
            known = environment_of(environment, task)
            honest = asyncio.run(known.honest(task))
            best = next(iter(honest.values()))
            assert asyncio.run(environment.score(task, best)).score == 1
            for kind, bad in known.dishonest(task, Random(0)).items():
                assert asyncio.run(environment.score(task, bad)).worth < accepted_from(kind)
            policy = Script(["?"], task.max_turns or 0)
            played = play(environment, task, environment.play(task, policy), policy, 60.0)
            assert asyncio.run(played).reward.total is not None
        assert set(environment.description()["agents"]) == {"sql", "diagnosis"}


def test_lessons_of_the_agents_are_mixed(monkeypatch):
    """A model would forget one agent while it learns the other."""
    monkeypatch.setattr(registry, "_registered", {DIGITS.name: DIGITS})
    agent = registry.joined({"sql": 1.0, "digits": 1.0})
    rows = agent.rows(agent.splits["train"])
    lessons = agent.lessons(rows, SETTINGS, right=20, flawed=2, random=Random(1))
    whose = ["digits" if "ask 1" in str(one.messages) else "sql" for one in lessons.right]
    assert sorted(whose) == ["digits"] * 20 + ["sql"] * 20
    assert {*whose[:20]} == {*whose[20:]} == {"digits", "sql"}
