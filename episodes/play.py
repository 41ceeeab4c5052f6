"""The one way an episode is played and scored: training, evaluation, drafting and the smoke test
come through here.

scored = await play(environment, task, environment.play(task, policy), policy, timeout=300)
scored.reward.total, scored.episode.stop_reason, scored.detail
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass

from common.command import Failure, UsageError
from episodes.agent import Environment, Episode, Policy, Task
from episodes.outcomes import STOP_REASONS, EpisodeError
from scoring.rubric import Reward


class AgentFault(Failure):
    """The agent's own code raised; one line that names the task, the error is its cause."""


@dataclass(frozen=True)
class Scored:
    """An episode with its reward. detail: what failed, where it has no score. seconds: scoring
    included.
    """

    task: Task
    episode: Episode
    reward: Reward
    detail: str
    seconds: float


async def play(
    environment: Environment,
    task: Task,
    episode: Awaitable[Episode],
    policy: Policy | None,
    timeout: float,
) -> Scored:
    """Wait for an episode and score it, all within `timeout` seconds.

    `policy` is who plays it: its replies and tokens are counted into the episode, also where it
    broke off. None: the episode was made without one (gold, a baseline), with its own counts.

    Raises AgentFault: the agent's own code raised; what was not caused by it raises as it is.
    """
    start, played = time.perf_counter(), Episode(stop_reason="failed")
    try:
        async with asyncio.timeout(timeout):
            played = await episode
            if played.stop_reason not in STOP_REASONS:
                raise ValueError(
                    f"an episode ended with {played.stop_reason!r}, not in episodes/outcomes.toml"
                )
            _count(played, policy)
            reward, detail = await environment.score(task, played), ""
    except TimeoutError:
        reward, detail = Reward(None, {}, "timeout"), f"no end after {timeout:g} s"
    except EpisodeError as error:
        reward, detail = Reward(None, {}, error.cause), str(error)
    except (UsageError, Failure):
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise AgentFault(f"the agent failed at task {task.id}: {what}") from error
    _count(played, policy)
    return Scored(task, played, reward, detail, time.perf_counter() - start)


def _count(episode: Episode, policy: Policy | None) -> None:
    if policy is not None:
        episode.turns = policy.turns
        episode.prompt_tokens, episode.completion_tokens = (
            policy.prompt_tokens,
            policy.completion_tokens,
        )
