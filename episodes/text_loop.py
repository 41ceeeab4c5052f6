"""An episode without tools: the policy and a partner take turns in words, by a protocol of the agent's own.

    async def respond(reply: str, episode: Episode) -> str | None: ...
    episode = await play_with_words(policy, [{"role": "user", "content": "I have a headache."}], respond)

`respond` reads a reply, notes what happened in `episode.events`, and returns the partner's words; or ends the episode
by setting `episode.stop_reason` (and `episode.answer`), and returns None.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from episodes.agent import Episode, Message, Policy
from episodes.outcomes import PolicyStop

Respond = Callable[[str, Episode], Awaitable[str | None]]


async def play_with_words(policy: Policy, messages: Sequence[Message], respond: Respond) -> Episode:
    """Play until `respond` ends the episode or the budget is spent (stop reason "max_turns").

    Raises EpisodeError: the policy's endpoint, or the partner, failed.
    """
    episode = Episode(messages=list(messages))
    try:
        while not episode.stop_reason:
            before = policy.completion_tokens
            message = await policy.reply(episode.messages)
            episode.reply_tokens.append(policy.completion_tokens - before)
            episode.messages.append(message)
            words = await respond(str(message["content"] or ""), episode)
            if words is not None and not episode.stop_reason:
                episode.messages.append({"role": "user", "content": words})
    except PolicyStop as stop:
        episode.stop_reason = stop.reason
    if policy.finish_reason == "length" and episode.stop_reason in ("answered", "no_answer", "bad_reply"):
        episode.stop_reason = "length"
    return episode
