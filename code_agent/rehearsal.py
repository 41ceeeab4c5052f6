"""Episodes without a model: gold, baselines, and bad ones, to see whether the grader can be fooled.

They run no program: the data's validator already ran the gold programs.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from code_agent import prompts
from code_agent.actions import SAID, as_text
from code_agent.game import permitted
from code_agent.protocol import Action, Event
from code_agent.task import CodeTask
from code_agent.tasks.base import TaskSet
from episodes.episode import Episode

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Rehearsed:
    """An action and what its program prints, if any. `error`: the exception that it raises."""

    action: Action
    printed: str = ""
    error: str = ""


def rehearse(tasks: TaskSet, task: CodeTask, turns: int, steps: Sequence[Rehearsed]) -> Episode:
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
            worth = tasks.score(task, episode.answer) if task.gold else None
            episode.events.append(Event("submit", step.action.params, "submitted", worth=worth))
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
    return str(json.loads(json.dumps(task.gold.value)))  # with lists instead of tuples


def gold_steps(task: CodeTask) -> list[Rehearsed]:
    """Return the steps that run the gold program and hand in what it prints."""
    if not task.program:
        return [Rehearsed(submit(gold_text(task)))]
    run = Rehearsed(Action("validate_code", {"code": task.program}), gold_text(task))
    return [run, Rehearsed(Action("submit"))]


def submit(answer: str) -> Action:
    return Action("submit", {"answer": answer})


def dishonest_episodes(
    task: CodeTask, turns: int, rehearsed: Callable[[Sequence[Rehearsed]], Episode], random: Random
) -> dict[str, Episode]:
    """Return a bad episode of every kind, such as another value, words, or no value at all."""
    gold = gold_text(task)
    numbers = list(dict.fromkeys(NUMBER.findall(f"{task.note} {task.question}")))
    answers = {
        "every number": "\n".join(map(str, range(200))) + f"\n{gold}",
        "gold among words": f"The answer is probably {gold}, or not.",
        # Several numbers, because a single one may be right
        "the question's numbers": " ".join(numbers if len(numbers) > 1 else (*numbers, "0", "1")),
        "nothing": " ",
    }
    ended = {kind: rehearsed([Rehearsed(submit(text))]) for kind, text in answers.items()}
    program = Rehearsed(Action("validate_code", {"code": "answer = None"}), "None")
    wrong = [program, Rehearsed(submit(other_value(task, random)))][-turns:]
    return ended | {"another value": rehearsed(wrong)}


def other_value(task: CodeTask, random: Random) -> str:
    """Return a value of the gold's form that is not the gold."""
    assert task.gold is not None
    value = task.gold.value
    other: Any = "1970-01-01"
    if isinstance(value, bool):
        other = not value
    elif isinstance(value, int | float):
        other = value * 2 + random.randint(3, 9)
    elif isinstance(value, tuple | list):
        other = list(value[1:]) or ["none of these"]
    elif task.gold.kind != "date":
        other = f"{value} {random.randint(2, 9)}"
    return json.dumps(other, ensure_ascii=False)
