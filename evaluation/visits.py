"""A visitor's episode, watched while it is played: each message, then how it ended.

Nothing is remembered between visits. Where the visitor is the partner, each visit plays the
conversation so far again, with the replies given then.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import choice
from typing import Any

from common.settings import Settings
from episodes.agent import Agent, Environment, Row
from episodes.episode import AgentError, Episode, Message, Task, ToolSpec
from episodes.outcomes import EpisodeError, PolicyStop
from episodes.play_and_score import bounded, no_end
from episodes.policy import ChatPolicy, Endpoint
from episodes.turns import turns_of

logger = logging.getLogger(__name__)

# What a visitor reads where the machine failed; the addresses and reasons are for the log.
UNAVAILABLE = "the agent cannot answer at the moment; please try again later"
Show = Callable[[Message], None]
RANDOM = "random"  # instead of a case's id
WAITS = "waits"  # stop reason: the visitor is to speak


@dataclass(frozen=True)
class Asked:
    """A visitor's request. words: the question or case first. said: the agent's earlier replies.

    case: the id of one of the agent's own cases, or RANDOM, in place of words.
    """

    words: Sequence[str]
    said: Sequence[str] = ()
    case: str | None = None
    temperature: float | None = None


@dataclass(frozen=True)
class End:
    """How a visit ended. reason: a stop reason, WAITS, or a cause, which `failure` explains.

    reply: the policy's last. content: the answer, in a conversation the reply. case, reference: of
    one of the agent's own cases.
    """

    reason: str
    reply: str = ""
    content: str = ""
    answer: str | None = None
    failure: str = ""
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    case: str | None = None
    reference: str | None = None


class TheirTurn(Exception):
    """It is the visitor's turn, and the request has no further words."""


class Watched(ChatPolicy):
    """A model whose episode is shown. First it repeats `said`."""

    def __init__(self, endpoint: Endpoint, max_turns: int, show: Show, said: Sequence[str]) -> None:
        super().__init__(endpoint, max_turns)
        self.show = show
        self.said = deque(said)
        self.read = 0  # messages so far
        self.known = True  # whether the visitor knows the next one
        self.last = ""

    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        for message in messages[self.read :]:
            if not self.known and message["role"] != "assistant":
                self.show(message)
        self.read = len(messages)
        self.known = bool(self.said)
        message = self._repeated() if self.said else await super().reply(messages, tools)
        self.last = message["content"] or ""
        if not self.known:
            self.show(message)
        return message

    def _repeated(self) -> Message:
        if self.turns >= self.max_turns:
            raise PolicyStop("max_turns")
        self.turns += 1
        self.finish_reason = "stop"
        return {"role": "assistant", "content": self.said.popleft()}


@dataclass
class Host:
    """Plays visits, `at_once` of them at a time. Later ones wait in line."""

    agent: Agent
    environment: Environment
    endpoint: Endpoint
    settings: Settings
    rows: Mapping[str, Row]
    at_once: int
    alive: Callable[[], bool] = lambda: True  # whether the model's server answers
    _places: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.at_once)

    def tasks(self) -> list[Task]:
        """Return the agent's own cases."""
        return [self.agent.task(row, self.settings) for row in self.rows.values()]

    async def visit(self, asked: Asked) -> AsyncGenerator[Message | End, None]:
        """Yield the messages of an episode, then its End. Closing the generator ends the episode.
        Raises AgentError: the case is unknown, or the agent does not take questions of visitors.
        """
        steps: asyncio.Queue[Message | None] = asyncio.Queue()
        playing = asyncio.create_task(self._play(asked, steps.put_nowait))
        playing.add_done_callback(lambda _: steps.put_nowait(None))
        try:
            while (step := await steps.get()) is not None:
                yield step
            yield playing.result()
        finally:
            playing.cancel()

    async def _play(self, asked: Asked, show: Show) -> End:
        row = self._row(asked.case) if asked.case else None
        task = self.agent.task(row, self.settings) if row else None
        own: dict[str, Any] = (
            {} if asked.temperature is None else {"temperature": asked.temperature}
        )
        budget = turns_of(task, self.settings) if task else self.settings.max_turns
        policy = Watched(replace(self.endpoint, **own), budget, show, asked.said)
        start = time.monotonic()
        answer = None
        failure = ""
        limit = partial(policy.limit, self.settings.episode_timeout)
        try:
            async with self._places, bounded(limit):
                if task:
                    episode = await self.environment.play(task, policy)
                else:
                    episode = await self._own(asked.words, policy)
            reason = episode.stop_reason
            answer = episode.answer
        except TheirTurn:
            reason = WAITS
        except TimeoutError:
            reason = "timeout"
            failure = no_end(limit())
        except EpisodeError as error:
            logger.warning("a visit failed (%s): %s", error.cause, error)
            reason = error.cause
            failure = UNAVAILABLE
        talks = self.environment.converses and not task
        return End(
            reason,
            policy.last,
            policy.last if talks or answer is None else answer,
            answer,
            failure,
            policy.turns,
            policy.prompt_tokens,
            policy.completion_tokens,
            round(time.monotonic() - start, 3),
            task.id if task else None,
            task.reference if task else None,
        )

    async def _own(self, words: Sequence[str], policy: Watched) -> Episode:
        later = deque(words[1:])

        async def answer(said: str) -> str:
            policy.known = True
            if not later:
                raise TheirTurn
            return later.popleft()

        return await self.environment.asked(words[0], answer, policy)

    def _row(self, case: str) -> Row:
        name = choice([*self.rows]) if case == RANDOM else case
        if name not in self.rows:
            raise AgentError(
                f"there is no case {name[:80]!r}; GET /agent lists them, and {RANDOM!r} takes any"
            )
        return self.rows[name]
