"""What an episode earns: the terms of rewards.toml.

Nothing is paid before an answer is handed in. Otherwise a policy would learn to keep to the form
and stop there.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from code_agent.protocol import Event, loops
from code_agent.task import CodeTask
from episodes.episode import Episode
from scoring.rubric import Reward, Rubric

if TYPE_CHECKING:
    from code_agent.tasks.base import TaskSet

RUBRIC = Rubric(
    tomllib.loads(Path(__file__).with_name("rewards.toml").read_text(encoding="utf-8"))["terms"]
)


def score(tasks: TaskSet, task: CodeTask, episode: Episode) -> Reward:
    """Return what an episode earns."""
    found = success(tasks, task, episode)
    values = {
        "success": found,
        "format": well_formed(episode.events) if episode.answer is not None else 0.0,
    }
    terms = RUBRIC.weigh(values)
    return Reward(sum(terms.values()), terms, score=found, counters=counters_of(episode.events))


def success(tasks: TaskSet, task: CodeTask, episode: Episode) -> float:
    """Return the value of the answer. Some sets determined it when it was handed in."""
    if episode.answer is None:
        return 0.0
    if task.gold is not None:
        return tasks.score(task, episode.answer)
    return next(event.worth for event in reversed(episode.events) if event.worth is not None)


def well_formed(events: Sequence[Event]) -> float:
    """Return the share of replies that were actions whose programs ran, or 0 without replies."""
    good = sum(not event.problem and not event.raised for event in events)
    return good / len(events) if events else 0.0


def counters_of(events: Sequence[Event]) -> dict[str, float]:
    """Return numbers to add up."""
    runs = [event for event in events if event.ran]
    kinds = Counter(event.action for event in events if event.action)
    counted = {
        "runs": len(runs),
        "runs_raised": sum(event.raised for event in runs),
        "loops": int(loops(events)),
        "malformed": sum(not event.action for event in events),
        "refused": sum(bool(event.action and event.problem) for event in events),
        **kinds,
    }
    return {name: float(number) for name, number in counted.items()}
