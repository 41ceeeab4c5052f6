"""The loop in words: a partner answers replies until protocol or budget ends the episode."""

import asyncio
from typing import Any

import pytest

from episodes.episode import Episode
from episodes.outcomes import EpisodeError, PolicyStop
from episodes.prompts import Prompts
from episodes.text_loop import Ending, Malformed, play_by_protocol, play_with_words
from tests.corpora import cases_of
from tests.episodes.scripted import ScriptedPolicy, says

FIRST = [{"role": "user", "content": "Guess my number."}]


async def respond(reply: str, episode: Episode) -> str | None:
    """Knows 7; other numbers are smaller or larger, other words end the episode."""
    episode.events.append(reply)
    if reply == "gone":
        raise EpisodeError("endpoint_unreachable", "the partner is gone")
    if not reply.isdigit():
        episode.stop_reason = "bad_reply" if reply else "no_answer"
        return "no words follow an end"
    if reply == "7":
        episode.stop_reason, episode.answer = "answered", reply
        return None
    return "larger" if int(reply) < 7 else "smaller"


def play(*replies: Any, max_turns: int = 3) -> tuple[Episode, ScriptedPolicy]:
    policy = ScriptedPolicy(*replies, max_turns=max_turns)
    return asyncio.run(play_with_words(policy, FIRST, respond)), policy


@pytest.mark.parametrize(
    ("last", "stop_reason"),
    [*cases_of(__file__, "ends_of_text"), (PolicyStop("context_overflow"), "context_overflow")],
)
def test_every_end_has_its_reason(last, stop_reason):
    episode, _ = play(says("3"), last)
    assert episode.stop_reason == stop_reason
    assert episode.answer is None
    assert episode.messages[-1]["content"] != "no words follow an end"


@pytest.mark.parametrize("words", [None, 120])
def test_a_partner_who_says_no_words_is_the_agents_fault(words):
    """The policy was asked again and again, until its budget was spent."""

    async def silent(reply: str, episode: Episode) -> Any:
        return words

    with pytest.raises(TypeError, match=f"said {words}"):
        asyncio.run(play_with_words(ScriptedPolicy(says("3")), FIRST, silent))


class Guess(str, Ending):
    """The number that was guessed."""


def in_a_protocol(*replies: Any, max_turns: int) -> Episode:
    """An episode in which digits end it, what ends with ? is a question, all else malformed."""

    def read(reply: str) -> Any:
        if reply.isdigit():
            return Guess(reply)
        return reply if reply.endswith("?") else Malformed("unclear")

    async def partner(asked: str, episode: Episode) -> str:
        episode.events.append(f"asked {asked}")
        return "larger"

    texts = {"first": "{complaint} ({turn}/{turns})", "turn": "{text} ({turn}/{turns})"}
    texts |= {"malformed": "No: {text} ({turn}/{turns})", "last": "Guess."}
    problems = {"unclear": "ask or guess"}
    prompts = Prompts(version="1", system="", problems=problems, **texts)
    said = [says(reply) if isinstance(reply, str) else reply for reply in replies]
    policy = ScriptedPolicy(*said, max_turns=max_turns)
    return asyncio.run(play_by_protocol(policy, prompts, "My number?", read, partner))


def test_each_reply_of_a_protocol_is_noted_and_answered_as_what_it_is():
    episode = in_a_protocol("3?", "well", "7", max_turns=4)
    told = [message["content"] for message in episode.messages if message["role"] == "user"]
    assert told == ["My number? (1/4)", "larger (2/4)", "No: ask or guess (3/4)"]
    said = [message["content"] for message in episode.messages if message["role"] == "assistant"]
    assert said == ["3?", "well", "7"]
    assert episode.events == ["asked 3?", Malformed("unclear"), "7"]
    assert (episode.stop_reason, episode.answer) == ("answered", "7")


def test_an_end_that_the_token_limit_cut_is_not_paid():
    episode = in_a_protocol("3?", says("7", "length"), max_turns=4)
    assert (episode.stop_reason, episode.answer) == ("length", None)
    assert episode.events == ["asked 3?", Malformed("cut")]


def test_who_has_one_turn_left_is_told_so_after_a_malformed_reply_too():
    episode = in_a_protocol("well", "7", max_turns=2)
    assert episode.messages[2]["content"] == "No: ask or guess (2/2)\nGuess."


@pytest.mark.parametrize(
    ("last", "problem", "stop_reason"),
    [
        ("9?", "too_late", "bad_reply"),
        ("well", "unclear", "bad_reply"),
        ("", "unclear", "no_answer"),
    ],
)
def test_a_last_reply_that_is_no_end_is_noted_as_malformed_and_the_partner_is_not_asked(
    last, problem, stop_reason
):
    episode = in_a_protocol("3?", last, max_turns=2)
    assert episode.events == ["asked 3?", Malformed(problem)]
    assert episode.stop_reason == stop_reason
