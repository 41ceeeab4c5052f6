"""The one way an episode is played and scored, in training and evaluation."""

import asyncio
import time
from collections.abc import Awaitable

from common.command import Failure, UsageError
from episodes.agent import Environment
from episodes.episode import Episode, Policy, Scored, Task
from episodes.outcomes import STOP_REASONS, EpisodeError
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
    """Play and score an episode within `timeout` seconds.

    The replies and tokens of `policy` are counted, also of a broken episode. None: gold, a
    baseline. Raises AgentFault: the agent's own code raised.
    """
    start = time.perf_counter()
    played = Episode(stop_reason="failed")

    try:
        async with asyncio.timeout(timeout) as limit:
            played = await episode
            if played.stop_reason not in STOP_REASONS:
                raise ValueError(
                    f"an episode ended with {played.stop_reason!r}, not in episodes/outcomes.toml"
                )
            _count(played, policy)
            reward = await environment.score(task, played)
            detail = ""
    except TimeoutError as error:
        reward = Reward(None, {}, "timeout")
        detail = no_end(timeout) if limit.expired() else f"the agent's own code raised {error!r}"
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


def no_end(timeout: float) -> str:
    """Return the message for an episode that its time limit ended."""
    return f"no end after {timeout:g} s; EPISODE_TIMEOUT gives episodes more time"


def _count(episode: Episode, policy: Policy | None) -> None:
    if policy is not None:
        episode.turns = policy.turns
        episode.prompt_tokens = policy.prompt_tokens
        episode.completion_tokens = policy.completion_tokens
