"""Players without a model, whose scores are read beside a model's: one set of names for all agents.

silent       says nothing
at_once      answers at once, without a tool or a question, as best the agent's tables allow
commonest    answers at once with the answer that most tasks of the file have
checklist    does the same for every task, then answers by what it saw

names_of(agent)                  # those that the agent has; all have "silent"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from episodes.agent import Agent, Environment
from episodes.episode import Episode, Task
from evaluation.tables import SILENT


def names_of(agent: Agent) -> tuple[str, ...]:
    """Return the names of the baselines that an agent has."""
    return (SILENT, *agent.showing.baselines)


def commonest_answer(tasks: Sequence[Task]) -> str:
    """Return the reference that most tasks have, of several the first in order; "" without any."""
    counts = Counter(task.reference for task in tasks if task.reference)
    return min(counts, key=lambda answer: (-counts[answer], answer)) if counts else ""


async def baseline_episode(
    environment: Environment, name: str, task: Task, commonest: str
) -> Episode:
    """Return the episode of a baseline; `commonest` is the answer that most tasks have."""
    if name == SILENT:
        return Episode(messages=[], stop_reason="no_answer", turns=1)
    return await environment.known.baseline(name, task, commonest)
