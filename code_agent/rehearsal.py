"""Episodes without a model: gold, baselines, and parts of bad ones. They run no program: the data's
validator already ran the gold programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from code_agent.actions import SAID, as_text
from code_agent.game import permitted
from code_agent.prompts import Prompts
from code_agent.protocol import Action, Event
from code_agent.task import CodeTask
from code_agent.tasks.base import TaskSet
from episodes.episode import Episode


@dataclass(frozen=True)
class Rehearsed:
    """An action and what its program prints, if any. `error`: the exception that it raises."""

    action: Action
    printed: str = ""
    error: str = ""


def rehearse(
    tasks: TaskSet, task: CodeTask, prompts: Prompts, turns: int, steps: Sequence[Rehearsed]
) -> Episode:
    """Return the episode of these steps, cut at the budget."""
    opening = prompts.opening(task, tasks.overview, permitted(tasks, "submit"), turns)
    episode = Episode(opening, stop_reason="max_turns")
    for turn, step in enumerate(steps[:turns], 1):
        episode.messages.append({"role": "assistant", "content": str(step.action)})
        episode.turns += 1
        if step.action.name == "submit":
            given = step.action.params.get("answer")
            outputs = [event.printed for event in episode.events if event.status == "SUCCESS"]
            episode.answer = as_text(given) if given is not None else outputs[-1]
            episode.stop_reason = "answered"
            episode.events.append(Event("submit", step.action.params, kind="submitted"))
            break
        said = step.error or step.printed
        event = Event(step.action.name, step.action.params, "requested_info", printed=said)
        if step.action.name == "validate_code":
            status = "FAILED" if step.error else "SUCCESS"
            event = replace(event, kind="code_execution", status=status)
        episode.events.append(event)
        words = prompts.said(said or SAID["nothing_printed"], turn + 1, turns, submits=True)
        episode.messages.append({"role": "user", "content": words})
    return episode


def gold_text(task: CodeTask) -> str:
    """Return the gold value as a program prints it."""
    assert task.gold is not None
    value = task.gold.value
    if isinstance(value, tuple):
        value = [list(row) if isinstance(row, tuple) else row for row in value]
    return str(value)


def gold_steps(task: CodeTask) -> list[Rehearsed]:
    """Return the steps that run the gold program and hand in what it prints."""
    if not task.program:
        return [Rehearsed(submit(gold_text(task)))]
    run = Rehearsed(Action("validate_code", {"code": task.program}), gold_text(task))
    return [run, Rehearsed(Action("submit"))]


def submit(answer: str) -> Action:
    return Action("submit", {"answer": answer})
