"""A gold program's output scores, and that of a program with one thing wrong does not.

A mutation that raises prints nothing and is not counted. One that prints the same value is no wrong
answer (a tie, a filter without effect on these rows): it is counted as equivalent by its value,
read here without the grader. Every other one must earn nothing, and each template has at least 20
of them.
"""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pandas
import pytest

from code_agent.graders import Gold, grade
from code_agent.task import CodeTask
from code_agent.tasks import get_task_class
from code_agent.validate import printed
from tests.code_agent.mutations import mutations_of

ROWS = 2  # of each template
ENOUGH = 20


def tasks_of(name: str) -> tuple[dict[str, list[CodeTask]], Path | None]:
    tasks, found = get_task_class(name)(mode="test"), defaultdict(list)
    for number in range(len(tasks)):
        task = tasks.task(number)
        found[task.task_type].append(task)
    return {template: each[:ROWS] for template, each in found.items()}, tasks.folder


SETS = {name: tasks_of(name) for name in ("ehr_demo", "calculators")}
TEMPLATES = [(name, template) for name, (found, _) in SETS.items() for template in found]


@pytest.fixture(autouse=True)
def tables_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = cache(pandas.read_csv)
    monkeypatch.setattr(
        pandas, "read_csv", lambda path, parse_dates=None: _read(read, path, parse_dates)
    )


def _read(read: Any, path: str, dates: list[str] | None) -> pandas.DataFrame:
    table = read(path).copy()
    for name in dates or ():
        table[name] = pandas.to_datetime(table[name])
    return table


def output_of(program: str, folder: Path | None) -> str:
    """What it prints; nothing where it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return printed(program, folder)
    except (Exception, SystemExit):
        return ""


def same_value(output: str, gold: Gold) -> bool:
    """Whether two values are the same by Python's own reading of them."""
    text = output.strip()
    if gold.kind in ("text", "date"):
        return text in (gold.value, f"{gold.value} 00:00:00", str([gold.value]))
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    if isinstance(value, list) and len(value) == 1:
        [value] = value  # one value, whether or not it stands in a list
    if gold.kind == "set":
        return isinstance(value, list | set) and sorted(map(str, value)) == sorted(
            map(str, gold.value)
        )
    if gold.kind == "table":
        return isinstance(value, dict) and value == dict(gold.value)
    if gold.kind == "list":
        return value == list(gold.value)
    if gold.kind == "boolean":
        return value in (True, False) and value == gold.value  # SQL's truth values are 1 and 0
    if isinstance(value, bool):
        return False
    away = gold.tolerance or 1e-6 * abs(gold.value)
    lower, upper = (
        (gold.value - away, gold.value + away) if gold.lower is None else (gold.lower, gold.upper)
    )
    return isinstance(value, int | float) and lower <= value <= upper


@pytest.mark.parametrize(
    ("name", "template"), TEMPLATES, ids=[template for _, template in TEMPLATES]
)
def test_gold_scores_and_what_is_near_it_does_not(name: str, template: str) -> None:
    (found, folder), wrong = SETS[name], 0
    for task in found[template]:
        assert task.gold is not None
        assert grade(printed(task.program, folder), task.gold)
        for mutation in mutations_of(task.program, Random(1)):
            output = output_of(mutation, folder)
            if output and not same_value(output, task.gold):
                wrong += 1
                assert not grade(output, task.gold), f"{mutation}\n{output}"
    assert wrong >= ENOUGH
