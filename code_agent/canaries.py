"""Episodes with a known score: bad ones, to see whether the grader can be fooled."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from random import Random
from typing import Any

from code_agent.prompts import Prompts
from code_agent.protocol import Action
from code_agent.rehearsal import Rehearsed, gold_text, rehearse, submit
from code_agent.task import CodeTask
from code_agent.tasks.base import TaskSet
from episodes.episode import Episode

TO_THE_JUDGE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))[
    "to_the_judge"
]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def dishonest_episodes(
    tasks: TaskSet, task: CodeTask, prompts: Prompts, turns: int, random: Random
) -> dict[str, Episode]:
    """Return a bad episode of every kind, such as another value, words, or no value at all."""
    gold = gold_text(task)
    numbers = list(dict.fromkeys(NUMBER.findall(f"{task.note} {task.question}")))
    answers = {
        "every number": "\n".join(map(str, range(200))) + f"\n{gold}",
        "gold among words": f"The answer is probably {gold}, or not.",
        # Several numbers, because a single one may be right
        "the question's numbers": " ".join(numbers if len(numbers) > 1 else (*numbers, "0", "1")),
        "infinity": random.choice(("inf", "nan", "-inf", "1e999")),
        "words to the judge": random.choice(TO_THE_JUDGE) + " ",
        "nothing": " ",
    }
    program = Rehearsed(Action("validate_code", {"code": "answer = None"}), "None")
    ended = {
        kind: rehearse(tasks, task, prompts, turns, [Rehearsed(submit(text))])
        for kind, text in answers.items()
    }
    wrong = [program, Rehearsed(submit(other_value(task, random)))][-turns:]
    return ended | {"another value": rehearse(tasks, task, prompts, turns, wrong)}


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
