"""A visitor's episode, watched while it is played: each message, then how it ended.

Nothing is remembered between visits. Where the visitor is the partner, each visit plays the
conversation so far again, with the replies given then.
"""

import asyncio
import json
import logging
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common.command import UsageError
from common.settings import Settings
from common.toml import table_beside
from episodes.agent import Agent, Environment, folder_of
from episodes.episode import AgentError, Episode, Message, Task, ToolSpec
from episodes.outcomes import EpisodeError, PolicyStop
from episodes.play_and_score import no_end
from episodes.policy import ChatPolicy, Endpoint
from episodes.turns import turns_of
from episodes.words import words_of
from scoring.text import normalise

logger = logging.getLogger(__name__)

# What a visitor reads where the machine failed; the addresses and reasons are for the log.
UNAVAILABLE = "the agent cannot answer at the moment; please try again later"
FOLDER = Path(__file__).with_name("serve_page")
ENDS: dict[str, dict[str, str]] = table_beside(__file__, "serve_page/ends.toml")
Show = Callable[[Message], None]
WAITS = "waits"  # stop reason: the visitor is to speak


@dataclass(frozen=True)
class Asked:
    """A visitor's request. words: the question or case first. said: the agent's earlier replies.

    case: the id of one of the agent's own cases, in place of words.
    """

    words: Sequence[str]
    said: Sequence[str] = ()
    case: str | None = None
    temperature: float | None = None


@dataclass(frozen=True)
class End:
    """How a visit ended. reason: a stop reason, WAITS, or a cause, which `failure` explains.

    reply: the policy's last. content: the answer, in a conversation the reply, or a sentence that
    says why there is none. in_rows: see `in_rows`. case, reference: of one of the agent's own cases.
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
    in_rows: bool | None = None
    case: str | None = None
    reference: str | None = None


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
        for one in messages[self.read :]:
            if not self.known and one["role"] != "assistant":
                self.show(one)
        self.read = len(messages)
        self.known = bool(self.said)
        if not self.said:
            message = await super().reply(messages, tools)
        elif self.turns >= self.max_turns:
            raise PolicyStop("max_turns")
        else:
            self.turns += 1
            self.finish_reason = "stop"
            message = {"role": "assistant", "content": self.said.popleft()}
        self.last = message["content"] or ""
        if not self.known:
            self.show(message)
        return message


@dataclass
class Host:
    """Plays visits, as many at a time as there are places. Later ones wait in line."""

    agent: Agent
    environment: Environment
    endpoint: Endpoint
    settings: Settings
    tasks: Mapping[str, Task]
    places: asyncio.Semaphore
    alive: bool = True  # whether the model's server answers

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
        task = None
        if asked.case:
            task = self.tasks.get(asked.case)
            if task is None:
                raise AgentError(f"there is no case {asked.case[:80]!r}; GET /agent lists them")
        endpoint = self.endpoint
        if asked.temperature is not None:
            endpoint = replace(endpoint, temperature=asked.temperature)
        budget = turns_of(task, self.settings) if task else self.settings.max_turns
        shown: list[Message] = []

        def note(message: Message) -> None:
            shown.append(message)
            show(message)

        policy = Watched(endpoint, budget, note, asked.said)
        start = time.monotonic()
        answer = None
        failure = ""
        timeout = self.settings.episode_timeout
        try:
            async with self.places, asyncio.timeout(timeout) as limit:
                if task:
                    episode = await self.environment.play(task, policy)
                else:
                    episode = await self._own(asked.words, policy)
            reason = episode.stop_reason
            answer = episode.answer
        except PolicyStop as stop:
            reason = stop.reason
        except EpisodeError as error:
            logger.warning("a visit failed (%s): %s", error.cause, error)
            reason = error.cause
            failure = UNAVAILABLE
        except UsageError:
            raise
        except (Exception, SystemExit):  # the agent's own code, which may be anybody's
            if limit.expired():
                reason = "timeout"
                failure = no_end(timeout)
            else:
                logger.exception("a visit failed")
                reason = "rollout_failed"
                failure = UNAVAILABLE
        if reason == WAITS or (self.environment.converses and not task and answer is not None):
            content = policy.last
        elif answer is not None:
            content = answer
        else:
            content = ENDS.get(reason, {}).get(words_of(folder_of(self.agent)).language, "")
        question = task.question if task else "\n".join(asked.words)
        return End(
            reason=reason,
            reply=policy.last,
            content=content,
            answer=answer,
            failure=failure,
            turns=policy.turns,
            prompt_tokens=policy.prompt_tokens,
            completion_tokens=policy.completion_tokens,
            seconds=round(time.monotonic() - start, 3),
            in_rows=None if answer is None else in_rows(answer, question, shown),
            case=task.id if task else None,
            reference=task.reference if task else None,
        )

    async def _own(self, words: Sequence[str], policy: Watched) -> Episode:
        later = deque(words[1:])

        async def answer(said: str) -> str:
            policy.known = True
            if not later:
                raise PolicyStop(WAITS)
            return later.popleft()

        return await self.environment.asked(words[0], answer, policy)


def in_rows(answer: str, question: str, messages: Sequence[Message]) -> bool | None:
    """Return whether an answer quotes a clause of a cell that a tool returned.

    None where no tool returned rows, or nothing but what the question says already.
    """
    said = normalise(answer)
    asked = normalise(question)
    clauses: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            for cell in _cells(str(message["content"])):
                clauses |= {normalise(part) for part in re.split("[，。；、,;\n]", cell)}
    new = [clause for clause in clauses if clause and clause not in asked]
    return any(clause in said for clause in new) if new else None


def _cells(content: str) -> list[str]:
    try:
        cells = []
        for row in json.loads(content)["rows"]:
            cells += row if isinstance(row, list) else [row]
    except (ValueError, KeyError, TypeError):
        return []
    texts = list[str]()
    for cell in filter(None, cells):
        texts.append(str(cell).removesuffix(".0"))
        if isinstance(cell, float):
            texts += [f"{cell:.15g}", f"{cell:g}"]  # as they may be quoted
    return texts
