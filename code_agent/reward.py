"""What an episode earns by the terms of rewards.toml, and facts beyond its reward.

Nothing is paid before an answer is handed in. Otherwise a policy would learn to keep to the form
and stop there.
"""

from collections import Counter
from collections.abc import Sequence

from code_agent.protocol import Event, loops
from code_agent.task import CodeTask
from common.toml import table_beside
from episodes.agent import Record
from episodes.episode import Episode
from scoring.rubric import Reward, Rubric

RUBRIC = Rubric(table_beside(__file__, "rewards.toml")["terms"])

SHOWN = 2000  # characters of what a program printed, in a record


def score(episode: Episode) -> Reward:
    """Return what an episode earns. format: the share of replies whose action or program ran."""
    found = success(episode)
    good = sum(not event.problem and not event.raised for event in episode.events)
    form = 0.0 if episode.answer is None else good / len(episode.events)
    terms = RUBRIC.weigh({"success": found, "format": form})
    return Reward(sum(terms.values()), terms, score=found, counters=counters_of(episode.events))


def success(episode: Episode) -> float:
    """Return the value of the answer, found out when it was handed in. Without an answer it is 0."""
    if episode.answer is None:
        return 0.0
    return next(event.worth for event in reversed(episode.events) if event.worth is not None)


def counters_of(events: Sequence[Event]) -> dict[str, float]:
    """Return numbers to add up."""
    runs = [event for event in events if event.ran]
    kinds = [event.action for event in events if event.action]
    counted = {
        "runs": len(runs),
        "runs_raised": sum(event.raised for event in runs),
        "loops": int(loops(events)),
        "malformed": len(events) - len(kinds),
        "refused": sum(bool(event.action and event.problem) for event in events),
        **Counter(kinds),
    }
    return {name: float(number) for name, number in counted.items()}


def facts_of(episode: Episode) -> dict[str, float | None]:
    """Return numbers to average. The share of runs that raised is None if nothing ran."""
    counted = counters_of(episode.events)
    runs = counted["runs"]
    values = [event for event in episode.events if event.ran and not event.raised]
    return {
        "success": success(episode),
        "steps": float(len(episode.events)),
        "runs": runs,
        "raised": counted["runs_raised"] / runs if runs else None,
        "printed_a_value": float(any(event.printed.strip() for event in values)),
        "handed_in": float(episode.answer is not None),
        "loops": counted["loops"],
    }


def record_of(task: CodeTask, episode: Episode) -> Record:
    """Return the facts, the set, the gold, the submitted answer and each step."""
    steps = []
    for event in episode.events:
        step = {
            "action": event.action,
            "params": event.params,
            "kind": event.kind,
            "status": event.status,
            "printed": event.printed[:SHOWN],
            "problem": event.problem,
        }
        steps.append(step)
    return {
        "facts": facts_of(episode),
        "task_set": task.task_set,
        "gold": task.reference,
        "answer": episode.answer,
        "steps": steps,
    }
