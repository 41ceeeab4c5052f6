"""Facts of an episode beyond its reward, and the steps it took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from code_agent.protocol import loops
from code_agent.reward import success
from code_agent.task import CodeTask
from episodes.agent import Record
from episodes.episode import Episode

if TYPE_CHECKING:
    from code_agent.tasks.base import TaskSet

SHOWN = 2000  # characters of what a program printed, in a record


def facts_of(tasks: TaskSet, task: CodeTask, episode: Episode) -> dict[str, float | None]:
    """Return numbers to average. The share of runs that raised is None if nothing ran."""
    runs = [event for event in episode.events if event.ran]
    printed = any(event.printed.strip() and not event.raised for event in runs)
    return {
        "success": success(tasks, task, episode),
        "steps": float(len(episode.events)),
        "runs": float(len(runs)),
        "raised": sum(event.raised for event in runs) / len(runs) if runs else None,
        "printed_a_value": float(printed),
        "handed_in": float(episode.answer is not None),
        "loops": float(loops(episode.events)),
    }


def record_of(tasks: TaskSet, task: CodeTask, episode: Episode) -> Record:
    """Return the facts, the set, the gold, the submitted answer and each step."""
    steps = []
    for event in episode.events:
        step: dict[str, Any] = {
            "action": event.action,
            "params": event.params,
            "kind": event.kind,
            "status": event.status,
        }
        if event.printed:
            step["printed"] = event.printed[:SHOWN]
        if event.problem:
            step["problem"] = event.problem
        steps.append(step)
    return {
        "facts": facts_of(tasks, task, episode),
        "task_set": task.task_set,
        "gold": task.reference,
        "answer": episode.answer,
        "steps": steps,
    }


def failure(record: Record) -> str:
    """Return the first kind of failure that applies to a scored episode."""
    if (record["score"] or 0) >= 1:
        return "right"
    if record["answer"] is None:
        return "loop" if record["facts"]["loops"] else "nothing_handed_in"
    if not record["facts"]["runs"]:
        return "no_program"
    return "wrong_value" if record["facts"]["printed_a_value"] else "only_errors"
