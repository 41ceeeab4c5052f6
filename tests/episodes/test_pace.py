"""An episode's time limit follows what the policy's server is seen to do, within bounds, and the
message says why it is what it is.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from common.settings import Settings
from episodes.episode import Episode, Scored
from episodes.pace import LONGEST, Limit, Pace
from episodes.play_and_score import play
from episodes.policy import ChatPolicy, Endpoint
from tests.episodes.guessing_agent import GuessingAgent
from tests.episodes.scripted import ScriptedPolicy, says
from tests.messages import missing

AGENT = GuessingAgent()


def pace(*calls: tuple[float, int]) -> Pace:
    seen = Pace()
    for seconds, tokens in calls:
        seen.note(seconds, tokens)
    return seen


def test_a_fast_or_unknown_server_changes_nothing() -> None:
    assert pace((1.0, 100)).limit(300, 3, 512).seconds == 300
    assert pace().limit(300, 3, 512).seconds == 300


def test_a_slow_server_gives_an_episode_more_and_the_reason_says_what_was_seen() -> None:
    limit = pace((100.0, 150), (50.0, 75)).limit(300, 3, 200)
    assert limit.seconds == pytest.approx(2 * 3 * 200 / 1.5)
    assert not missing(limit.why, "1.5", 3, 200, "400 s")
    assert pace((100.0, 150)).limit(300, 3, None).seconds == pytest.approx(2 * 3 * 150 / 1.5)


def test_there_is_an_end() -> None:
    assert pace((100.0, 1)).limit(300, 3, 512).seconds == LONGEST * 300


class Followed(ScriptedPolicy):
    """Its limit grows when its episode would have ended by the one that was set."""

    def __init__(self, *replies: Any, grows: bool) -> None:
        super().__init__(*replies)
        self.grows, self.looks = grows, 0

    def limit(self, timeout: float) -> Limit:
        self.looks += 1
        return Limit(60.0 if self.grows and self.looks > 1 else timeout, "the server is slow")


@pytest.mark.parametrize("grows", [True, False])
def test_an_episode_goes_on_while_its_limit_grows(grows: bool) -> None:
    async def slow(policy: Followed) -> Episode:
        """Ends only after the limit that was set was looked at once more."""
        while policy.looks < 2 or not grows:
            await asyncio.sleep(0.01)
        return Episode(answer="salt", stop_reason="answered")

    async def played() -> Scored:
        settings = Settings(_env_file=None)
        environment, policy = AGENT.open(settings, {}), Followed(says("salt"), grows=grows)
        task = AGENT.task({"id": "t", "word": "salt"}, settings)
        return await play(environment, task, slow(policy), policy, 0.05)

    scored = asyncio.run(played())
    if grows:
        assert scored.episode.answer == "salt"
    else:
        assert scored.reward.unscored == "timeout"
        assert not missing(scored.detail, "0.05 s", "the server is slow")


async def test_the_policy_learns_its_servers_speed(llm: Any) -> None:
    llm.script(says("hello"))
    policy = ChatPolicy(Endpoint(llm.base_url, "of this test", max_tokens=8), max_turns=2)
    before = policy.limit(300).why
    await policy.reply([{"role": "user", "content": "hi"}])
    assert not missing(policy.limit(300).why, 2, 8)
    assert policy.limit(300).why != before
