"""A person's own question is played to an end by every agent, or it is refused."""

import asyncio
from contextlib import closing

import pytest

from episodes import registry
from episodes.episode import Episode
from episodes.outcomes import STOP_REASONS
from episodes.policy import Endpoint
from episodes.text_loop import play_with_words
from evaluation.visits import Watched
from tests.digits_agent.agent import AGENT as DIGITS
from tests.episodes.scripted import ScriptedPolicy, asks, says
from tests.evaluation.visiting import SETTINGS

REPLIES = {
    "words": says("yes"),
    "nothing": says(""),
    "a call": asks("SELECT 1"),
    "a question": says("<answer>问题：哪里疼？</answer>"),
    "an order": says("Current diagnosis: x\nFurther examination needed: CBC.\nReason: y"),
    "a program": says('{"action": "validate_code", "params": {"code": "print(1)"}}'),
}


async def answer(said: str) -> str:
    assert said
    return "right lower side"


@pytest.mark.system
@pytest.mark.parametrize("name", registry.names())
def test_an_own_question_is_played_to_an_end(name, has_packages_of):
    has_packages_of(name)
    agent = registry.get(name)
    if agent is DIGITS:
        pytest.skip("it takes none; see below")
    with closing(agent.open(SETTINGS, {})) as environment:
        for reply in REPLIES.values():
            policy = ScriptedPolicy(reply, max_turns=3)
            episode = asyncio.run(environment.asked("Which one?", answer, policy))
            assert episode.stop_reason in STOP_REASONS
            assert "Which one?" in policy.asked[0][-1]["content"]
            assert policy.turns <= 3


def test_replies_that_are_played_again_count_against_the_budget():
    """Else a visitor who sends a long conversation has an episode longer than any other."""
    policy = Watched(Endpoint("http://127.0.0.1:9/v1", "m"), 2, print, ["one", "two", "three"])

    async def respond(reply: str, episode: Episode) -> str:
        return "go on"

    episode = asyncio.run(play_with_words(policy, [{"role": "user", "content": "?"}], respond))
    said = [message["content"] for message in episode.messages if message["role"] == "assistant"]
    assert (episode.stop_reason, policy.turns, said) == ("max_turns", 2, ["one", "two"])
