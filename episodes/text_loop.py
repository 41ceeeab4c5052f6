"""An episode without tools: the policy and a partner take turns in words.

`respond` gets a reply without its thought, notes what happened in `episode.events`, and returns the
partner's words, or sets `episode.stop_reason` and returns None.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from common.thoughts import after_thought
from episodes.episode import Episode, Message, Policy
from episodes.outcomes import PolicyStop
from episodes.prompts import Prompts

Respond = Callable[[str, Episode], Awaitable[str | None]]
# Answers a reply as it was read, and notes in `events` what happened
Partner = Callable[[Any, Episode], Awaitable[str]]


@dataclass(frozen=True)
class Malformed:
    """A reply of no form. problem: its name, "too_late" (not the end at last) or "cut"."""

    problem: str


class Ending:
    """A reply that ends the episode. Its text is the answer."""


async def play_with_words(policy: Policy, messages: Sequence[Message], respond: Respond) -> Episode:
    """Play until `respond` ends the episode or the budget is spent. Raises EpisodeError."""
    episode = Episode(messages=list(messages))
    try:
        while not episode.stop_reason:
            before = policy.completion_tokens
            message = await policy.reply(episode.messages)
            episode.reply_tokens.append(policy.completion_tokens - before)
            episode.messages.append(message)
            text = str(message["content"] or "")
            said = after_thought(text)
            words = await respond(text if said is None else said, episode)
            if episode.stop_reason:
                break
            if not isinstance(words, str):
                raise TypeError(f"the partner said {words!r}; expected words or a stop reason")
            episode.messages.append({"role": "user", "content": words})
    except PolicyStop as stop:
        episode.stop_reason = stop.reason
    episode.end_as_cut(policy)
    return episode


async def play_by_protocol(
    policy: Policy, prompts: Prompts, complaint: str, read: Callable[[str], Any], partner: Partner
) -> Episode:
    """Play until an Ending is read. Note each reply in `events`. Raises EpisodeError."""

    async def respond(reply: str, episode: Episode) -> str | None:
        said = read(reply)
        following = policy.turns + 1
        turns = policy.max_turns
        if isinstance(said, Ending):
            cut = policy.finish_reason == "length"  # then `end_as_cut` takes the answer back
            episode.events.append(Malformed("cut") if cut else said)
            episode.answer = str(said)
            episode.stop_reason = "answered"
            return None
        if following > turns:
            episode.events.append(said if isinstance(said, Malformed) else Malformed("too_late"))
            episode.stop_reason = "bad_reply" if reply.strip() else "no_answer"
            return None
        if isinstance(said, Malformed):
            episode.events.append(said)
            return prompts.wrong(said.problem, following, turns)
        return prompts.said(await partner(said, episode), following, turns)

    return await play_with_words(policy, prompts.opening(complaint, policy.max_turns), respond)
