"""The one way to play: an episode with its reward, or the cause why there is none."""

import asyncio
import re
from typing import Any

import pytest

from common.settings import ROOT, Settings
from episodes.episode import Episode, Scored, Task
from episodes.outcomes import STOP_REASONS, UNSCORED
from episodes.play_and_score import AgentFault, play
from scoring.rubric import Reward
from tests.episodes.guessing_agent import GuessingAgent
from tests.episodes.scripted import ScriptedPolicy, says
from tests.messages import missing

AGENT = GuessingAgent()


def opened(word: str = "salt") -> tuple[Any, Task]:
    """An environment, and the task with this word."""
    settings = Settings(_env_file=None)
    return AGENT.open(settings, {}), AGENT.task({"id": "t", "word": word}, settings)


def played(word: str, *replies: Any) -> Scored:
    environment, task = opened(word)
    policy = ScriptedPolicy(*replies)
    return asyncio.run(play(environment, task, environment.play(task, policy), policy, 60.0))


def test_what_breaks_off_while_it_is_played_is_unscored_and_still_counted():
    scored = played("gone", says("sugar"))
    assert (scored.reward.total, scored.reward.unscored) == (None, "endpoint_unreachable")
    assert scored.episode.stop_reason == "failed"
    assert scored.episode.turns == 1
    assert scored.episode.messages == []
    assert not missing(scored.detail, "endpoint_unreachable", "the partner is gone")


def test_what_cannot_be_scored_keeps_its_episode():
    scored = played("unjudged", says("unjudged"))
    assert (scored.reward.unscored, scored.episode.answer) == ("judge_failed", "unjudged")


def test_an_endless_episode_ends_as_a_timeout():
    async def never() -> Episode:
        await asyncio.Event().wait()
        raise AssertionError

    environment, task = opened()
    scored = asyncio.run(play(environment, task, never(), None, timeout=0.01))
    assert (scored.reward.total, scored.reward.unscored) == (None, "timeout")
    assert "0.01 s" in scored.detail


def test_a_timeout_of_the_agents_own_is_not_told_as_the_episodes():
    async def broken() -> Episode:
        raise TimeoutError("the pool is full")

    environment, task = opened()
    scored = asyncio.run(play(environment, task, broken(), None, timeout=60))
    assert scored.reward.unscored == "timeout"
    assert not missing(scored.detail, "the pool is full")


def test_an_episode_is_scored_with_the_counts_of_its_policy(monkeypatch):
    """A rule may pay for fewer turns."""
    seen: list[Any] = []

    class Counting(ScriptedPolicy):
        async def reply(self, *asked: Any) -> Any:
            self.prompt_tokens = 30
            self.completion_tokens = 4
            return await super().reply(*asked)

    async def score(task: Task, episode: Episode) -> Reward:
        seen.append((episode.turns, episode.prompt_tokens, episode.completion_tokens))
        return Reward(1.0, {})

    environment, task = opened()
    monkeypatch.setattr(environment, "score", score)
    policy = Counting(says("salt"))
    asyncio.run(play(environment, task, environment.play(task, policy), policy, 60))
    assert seen == [(1, 30, 4)]


def test_an_episode_without_a_policy_keeps_its_own_counts_and_an_unknown_end_is_a_mistake():
    async def made(stop_reason: str) -> Scored:
        environment, task = opened()

        async def episode() -> Episode:
            return Episode(answer="salt", stop_reason=stop_reason, turns=5)

        return await play(environment, task, episode(), None, 60)

    assert asyncio.run(made("answered")).episode.turns == 5
    with pytest.raises(AgentFault, match=r"task t: ValueError: .*'finished'"):
        asyncio.run(made("finished"))


def test_the_page_shows_both_lists():
    page = (ROOT / "docs" / "evaluate-and-serve.md").read_text(encoding="utf-8")
    section = page.split("## How episodes end")[1].split("\n## ")[0]
    row = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.MULTILINE)
    tables = [dict(row.findall(part)) for part in section.split("| cause |")]
    assert tables == [STOP_REASONS, UNSCORED]
