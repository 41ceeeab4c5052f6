"""A program outside plays an agent's episodes and gets the rewards that an evaluation gives."""

import asyncio
import sys
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import pytest

from common.settings import ROOT, load_settings
from episodes import registry
from episodes.agent import Agent
from episodes.play_and_score import play
from episodes.turns import with_turns
from interop.medical_agents.client import Player, PlayerError, tasks_of

pytestmark = pytest.mark.system

SECONDS = 60.0
# A player that ends after an episode
ONCE = """
import json, sys
print(json.dumps({"tasks": []}), flush=True)
episode = json.loads(sys.stdin.readline())["episode"]
print(json.dumps({"episode": episode, "reward": 1.0}), flush=True)
"""
Complete = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


def completing(replies: list[dict[str, Any]]) -> Complete:
    """A policy that replies from a list, and then with nothing."""
    left = iter(replies)

    async def complete(body: dict[str, Any]) -> dict[str, Any]:
        message = next(left, {"role": "assistant", "content": ""})
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    return complete


def options_of(agent: Agent) -> dict[str, Any]:
    parser = ArgumentParser()
    agent.add_flags(parser)
    return vars(parser.parse_args([]))


@pytest.mark.parametrize("name", ["consultation", "diagnosis", "sql"])
async def test_gold_and_silence_earn_what_they_earn_in_an_evaluation(name):
    agent = registry.get(name)
    settings = with_turns(agent, load_settings())
    row = agent.rows(agent.splits["test"])[0]
    task = agent.task(row, settings)
    with closing(agent.open(settings, options_of(agent), evaluating=True)) as environment:
        gold = await environment.gold(task)
        assert gold is not None
        known = environment.gold(task)
        wanted = await play(environment, task, known, None, SECONDS)
    replies = [message for message in gold.messages if message["role"] == "assistant"]
    with closing(Player(name)) as player:
        earned = await player.play(task.id, completing(replies))
        silent = await player.play(task.id, completing([]))
    assert (earned["reward"], earned["score"]) == (wanted.reward.total, wanted.reward.score)
    assert earned["reward"] == pytest.approx(environment.highest)
    assert 0 <= silent["reward"] < 0.5 * earned["reward"]


async def test_a_reply_that_fails_outside_is_unscored_and_says_why():
    async def failing(body: dict[str, Any]) -> dict[str, Any]:
        raise ConnectionError("no such server")

    [task, *_] = tasks_of("diagnosis")
    with closing(Player("diagnosis")) as player:
        result = await player.play(task["id"], failing)
    assert (result["reward"], result["unscored"]) == (None, "endpoint_error")
    assert "no such server" in result["detail"]


async def test_an_unknown_file_or_task_is_an_error(capfd):
    with pytest.raises(PlayerError, match="ended with 2"):
        tasks_of("diagnosis", ["--data", "nowhere.jsonl"])
    assert "nowhere.jsonl" in capfd.readouterr().err
    [task, *_] = tasks_of("diagnosis")
    with closing(Player("diagnosis")) as player:
        with pytest.raises(PlayerError, match="no-such-task"):
            await player.play("no-such-task", completing([]))
        assert (await player.play(task["id"], completing([])))["reward"] is not None


async def test_episodes_end_by_themselves_alone():
    """One that is cancelled, one whose completion is no JSON, and one that goes on."""
    [task, *_] = tasks_of("diagnosis")

    async def forever(body: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(SECONDS)
        return {}

    async def no_json(body: dict[str, Any]) -> dict[str, Any]:
        return {"choices": object()}

    with closing(Player("diagnosis")) as player:
        cancelled = asyncio.create_task(player.play(task["id"], forever))
        broken = asyncio.create_task(player.play(task["id"], no_json))
        await asyncio.sleep(0)
        cancelled.cancel()
        assert (await broken)["unscored"] == "endpoint_error"
        assert (await player.play(task["id"], completing([])))["reward"] is not None


async def test_after_a_player_ended_its_episodes_are_errors():
    with closing(Player("", command=[sys.executable, "-c", ONCE])) as player:
        assert (await player.play("any", completing([])))["reward"] == 1.0
        with pytest.raises(PlayerError, match="ended"):
            await player.play("any", completing([]))


async def test_what_an_agent_prints_is_no_line_and_its_error_is_told(tmp_path, monkeypatch):
    """Its `score` prints, and then fails."""
    patch = (
        "from diagnosis_agent.environment import DiagnosisEnvironment\n"
        "async def score(self, task, episode):\n"
        "    print('words of an agent')\n"
        "    raise ZeroDivisionError('its own fault')\n"
        "DiagnosisEnvironment.score = score\n"
    )
    (tmp_path / "sitecustomize.py").write_text(patch, encoding="utf-8")
    [task, *_] = tasks_of("diagnosis")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    with closing(Player("diagnosis")) as player, pytest.raises(PlayerError, match="its own fault"):
        await player.play(task["id"], completing([]))
