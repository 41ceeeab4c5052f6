"""The one way an episode is played and scored, in training and evaluation."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

from common.command import Failure, UsageError, told
from common.settings import Settings
from episodes.agent import Agent, Environment, Row
from episodes.episode import AgentError, Episode, Policy, Scored, Task
from episodes.outcomes import STOP_REASONS, EpisodeError
from scoring.rubric import ROUNDING, Reward

logger = logging.getLogger(__name__)


class AgentFault(Failure):
    """The agent's own code raised. The message names the function and the row."""


@contextmanager
def own_code(owner: object, function: str, row: object) -> Iterator[None]:
    """Turn what a function of the agent's own raises, SystemExit too, into an AgentFault."""
    try:
        yield
    except (UsageError, Failure, EpisodeError, TimeoutError):
        raise
    except (Exception, SystemExit) as error:
        where = f"{type(owner).__name__}.{function} failed at {row}"
        raise AgentFault(f"{where}: {told(error)}") from error


def tasks_of(agent: Agent, rows: Sequence[Row], settings: Settings) -> list[Task]:
    """Return the tasks of rows. Raises AgentError: there are none, or a row makes no task."""
    if not rows:
        raise AgentError(f"there are no rows for the {agent.name} agent; give a file that has some")
    tasks = []
    for row in rows:
        with own_code(agent, "task", f"row {row.get('id')}"):
            task = agent.task(row, settings)
            if not isinstance(task, Task):
                raise TypeError(f"expected a Task, got {task!r}")
            if task.id in (None, "") or isinstance(task.id, list | dict):
                raise AgentError(f"a row has the id {task.id!r}; expected a name of its own")
            if not isinstance(task.id, str):  # a file may have numbers
                task = replace(task, id=str(task.id))
            tasks.append(task)
    return tasks


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
    detail = ""
    try:
        async with asyncio.timeout(timeout) as limit:
            with own_code(environment, "play", f"task {task.id}"):
                played = await episode
                if played.stop_reason not in STOP_REASONS:
                    raise ValueError(
                        f"an episode ended with {played.stop_reason!r}, not in episodes/outcomes.toml"
                    )
            _count(played, policy)
            reward = await score(environment, task, played)
    except TimeoutError as error:
        reward = Reward(None, {}, "timeout")
        detail = no_end(timeout) if limit.expired() else f"the agent's own code raised {error!r}"
    except EpisodeError as error:
        reward = Reward(None, {}, error.cause)
        detail = str(error)
    _count(played, policy)
    return Scored(task, played, reward, detail, time.perf_counter() - start)


async def score(environment: Environment, task: Task, episode: Episode) -> Reward:
    """Return what an episode earned. Raises AgentFault. Warns, once, of more than the highest."""
    with own_code(environment, "score", f"task {task.id}"):
        reward = await environment.score(task, episode)
        if not isinstance(reward, Reward):
            raise TypeError(f"expected a Reward, got {reward!r}")
    if (reward.total or 0.0) > environment.highest + ROUNDING:
        _warn_of_more(type(environment).__name__, environment.highest)
    return reward


@cache
def _warn_of_more(name: str, highest: float) -> None:
    logger.warning(
        "%s.score pays more than highest=%g; set highest to the most it pays", name, highest
    )


def no_end(timeout: float) -> str:
    """Return the message for an episode that its time limit ended."""
    return f"no end after {timeout:g} s; EPISODE_TIMEOUT gives episodes more time"


def _count(episode: Episode, policy: Policy | None) -> None:
    if policy is not None:
        episode.turns = policy.turns
        episode.prompt_tokens = policy.prompt_tokens
        episode.completion_tokens = policy.completion_tokens
