"""What an evaluation says of episodes: groups of a gain by form, kinds of failure, runs that
raised; and canaries.

Keeps of docs/code.md: the numbers of an evaluation are of what the page says.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from code_agent.agent import AGENT
from code_agent.canaries import dishonest_episodes, other_value
from code_agent.facts import group_of
from code_agent.game import Event
from code_agent.graders import Gold, grade
from code_agent.prompts import load_prompts
from code_agent.reward import well_formed
from code_agent.task import CodeTask, read_rows, task_of
from tests.code_agent.cases import Small

RAN = {"kind": "code_execution", "status": "SUCCESS", "printed": "3"}
RAISED = {"kind": "code_execution", "status": "FAILED", "printed": "KeyError"}
SILENT = {"kind": "code_execution", "status": "SUCCESS"}
SUBMITTED = {"kind": "submitted", "status": ""}


@pytest.mark.parametrize(
    ("steps", "group"),
    [([RAN, SUBMITTED], 1), ([RAISED], 0), ([SILENT], 0), ([SUBMITTED], 0), ([], 0)],
)
def test_form_is_a_program_that_ran_and_printed(steps: list[dict[str, Any]], group: int) -> None:
    assert group_of({"steps": steps}) == group
    assert AGENT.showing.gain_groups({"steps": steps}) == {"gain_by_form": group}


@pytest.mark.parametrize(
    ("score", "answer", "facts", "kind"),
    [
        (1.0, "3", {}, "right"),
        (0.0, None, {"loops": 1.0}, "loop"),
        (0.0, None, {}, "nothing_handed_in"),
        (0.0, "4", {"runs": 0.0}, "no_program"),
        (0.0, "4", {"printed_a_value": 1.0}, "wrong_value"),
        (0.0, "4", {"printed_a_value": 0.0}, "only_errors"),
    ],
)
def test_kinds_of_failure(
    score: float, answer: str | None, facts: dict[str, float], kind: str
) -> None:
    record = {
        "score": score,
        "answer": answer,
        "facts": {"loops": 0.0, "runs": 1.0, "printed_a_value": 1.0} | facts,
    }
    assert AGENT.showing.failure(record) == kind
    assert kind in AGENT.showing.failures


def test_runs_that_raised_count_by_each_run() -> None:
    records = [{"steps": [RAN, RAISED, RAISED]}, {"steps": [RAN, SUBMITTED]}]
    assert AGENT.showing.summarise(records) == {"runs_raised": 0.5}
    assert AGENT.showing.summarise([{"steps": [SUBMITTED]}]) == {"runs_raised": None}


def test_form_is_the_share_of_replies_that_were_actions_and_ran() -> None:
    assert well_formed([]) == 0
    events = [
        Event("validate_code", **RAN),
        Event("validate_code", **RAISED),
        Event("", problem="no_action"),
    ]
    assert well_formed([*events, Event("submit", kind="submitted")]) == 0.5


@pytest.mark.parametrize("path", ["data/code/test.parquet", "data/calculators/test.parquet"])
def test_no_dishonest_answer_is_right(path: str) -> None:
    tasks = Small()
    for number, row in enumerate(read_rows(path)):
        task = task_of(row)
        assert task.gold is not None
        for kind, episode in dishonest_episodes(
            tasks, task, load_prompts(), 4, Random(number)
        ).items():
            assert episode.answer is not None
            assert not grade(episode.answer, task.gold), (kind, task)


@pytest.mark.parametrize(
    "gold",
    [
        *(Gold("integer", 0), Gold("number", 0.0), Gold("boolean", True), Gold("text", "ccu")),
        *(
            Gold("date", "2101-01-01"),
            Gold("set", ("a",), items=("text",)),
            Gold("list", (1, 2), items=("integer",)),
        ),
        Gold("table", (("a", 1),), items=("text", "integer")),
    ],
)
def test_another_value_is_another_one(gold: Gold) -> None:
    task = CodeTask(id="1", question="?", task_set="small", gold=gold)
    others = [other_value(task, Random(seed)) for seed in range(20)]
    assert not any(grade(other, gold) for other in others)
    several = isinstance(gold.value, tuple)
    assert all(isinstance(json.loads(other), list) == several for other in others), "of its form"


def test_the_data_files_are_where_the_agent_says(tmp_path: Path) -> None:
    assert {len(read_rows(path)) for path in AGENT.splits.values()} == {960, 96, 320}
