"""The one way an episode is played and scored, in training and evaluation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from common.command import Failure, UsageError
from episodes.agent import Environment
from episodes.episode import Episode, Policy, Scored, Task
from episodes.outcomes import STOP_REASONS, EpisodeError
from episodes.pace import Limit
from scoring.rubric import Reward


class AgentFault(Failure):
    """The agent's own code raised. The message names the task."""


async def play(
    environment: Environment,
    task: Task,
    episode: Awaitable[Episode],
    policy: Policy | None,
    timeout: float,
) -> Scored:
    """Play and score an episode within `timeout` seconds, or the policy's `limit`.

    The replies and tokens of `policy` are counted, also of a broken episode. None: gold, a
    baseline. Raises AgentFault: the agent's own code raised.
    """
    start = time.perf_counter()
    played = Episode(stop_reason="failed")

    def limit() -> Limit:
        follows = getattr(policy, "limit", None)
        return follows(timeout) if follows else Limit(timeout, "")

    try:
        async with bounded(limit):
            played = await episode
            if played.stop_reason not in STOP_REASONS:
                raise ValueError(
                    f"an episode ended with {played.stop_reason!r}, not in episodes/outcomes.toml"
                )
            _count(played, policy)
            reward = await environment.score(task, played)
            detail = ""
    except TimeoutError:
        reward = Reward(None, {}, "timeout")
        detail = no_end(limit())
    except EpisodeError as error:
        reward = Reward(None, {}, error.cause)
        detail = str(error)
    except (UsageError, Failure):
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise AgentFault(f"the agent failed at task {task.id}: {what}") from error
    _count(played, policy)
    return Scored(task, played, reward, detail, time.perf_counter() - start)


@asynccontextmanager
async def bounded(limit: Callable[[], Limit]) -> AsyncIterator[None]:
    """End what is done inside when its limit has passed, as it is then. Raises TimeoutError."""
    loop = asyncio.get_running_loop()
    begun = loop.time()

    async def wait() -> None:
        while (left := begun + limit().seconds - loop.time()) > 0:
            await asyncio.sleep(left)
        bound.reschedule(loop.time())

    async with asyncio.timeout(None) as bound:
        waiting = asyncio.create_task(wait())
        try:
            yield
        finally:
            waiting.cancel()


def no_end(limit: Limit) -> str:
    """Return the message for an episode that its time limit ended."""
    return f"no end after {limit.seconds:g} s" + (f": {limit.why}" if limit.why else "")


def _count(episode: Episode, policy: Policy | None) -> None:
    if policy is not None:
        episode.turns = policy.turns
        episode.prompt_tokens = policy.prompt_tokens
        episode.completion_tokens = policy.completion_tokens
