"""What a model of the simulator learns is what it will be asked, and how good it is is measured
against the records.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest

from diagnosis_agent.agent import AGENT
from diagnosis_agent.llm_simulator import SEPARATOR, prompt_for, split_range
from diagnosis_agent.simulator import Result
from diagnosis_agent.task import DiagnosisTask, task_of
from diagnosis_agent.world_model import MOST_EVENTS, in_order, world_lessons
from diagnosis_agent.world_quality import Made, numbers, rules
from episodes.episode import Conversation

EVENT = re.compile(r"Exam name:\n(.+)\n(?:Reference Range:\n(.+)\n)?Exam results:\n\Z")
TASK = DiagnosisTask(
    id="1", question="q", reference="gout", text="A man of 50.", results={"Ankle test": "warm"}
)
CBC = "white blood cells 14.2 10^9/L (high); neutrophils 58 %; mean cell volume 85 fL"
USUAL = "white blood cells 4.0 to 10.0; neutrophils 40 to 75; mean cell volume 80 to 100"
RECORDED = f"{CBC} (reference range: {USUAL})"


@cache
def tasks() -> tuple[DiagnosisTask, ...]:
    return tuple(task_of(row) for row in AGENT.rows(AGENT.splits["val"])[:12])


def text_of(told: Conversation) -> str:
    return "".join(str(message["content"]) for message in told.messages)


def test_every_recorded_result_is_learned_once_and_others_are_normal() -> None:
    for task in tasks():
        asked = [message["content"] for told in world_lessons([task]) for message in told.messages]
        names = [match[1] for part in asked if (match := EVENT.search(part))]
        learned = dict(
            zip(names, (part for part in asked if part.endswith(SEPARATOR)), strict=True)
        )
        assert {
            name: split_range(text)[0] + SEPARATOR for name, text in task.results.items()
        }.items() <= learned.items()
        assert len(names) == len(learned) > len(task.results)


def test_a_lesson_without_ranges_is_what_the_model_is_asked() -> None:
    for told in world_lessons(tasks()):
        text = re.sub(r"Reference Range:\n.+\n", "", text_of(told))
        task = next(one for one in tasks() if text.startswith(one.text) and one.reference in text)
        events = [part.partition("\nExam results:\n") for part in text.split("Exam name:\n")[1:]]
        past = [
            Result(name, results.removesuffix(SEPARATOR), "recorded") for name, _, results in events
        ]
        last = past.pop()
        assert prompt_for(task, last.name, past) + last.text + SEPARATOR == text
        assert (told.raw, told.learn) == (True, [True] * len(events))
        assert len(events) <= MOST_EVENTS


def test_steps_of_care_are_in_order() -> None:
    in_care = ["vital signs", "complete blood count", "chest X-ray", "unheard of"]
    events = [(name, "well") for name in reversed(in_care)]
    assert [name for name, _ in in_order(events, Random(0))] == in_care


def test_lessons_come_out_alike_and_a_case_without_results_has_none() -> None:
    assert [*world_lessons(tasks())] == [*world_lessons(tasks())]
    assert [
        text_of(one).endswith("Ankle test\nExam results:\nwarm<SEP>")
        for one in world_lessons([TASK])
    ] == [True]
    assert [*world_lessons([replace(TASK, results={})])] == []


def made(text: str, recorded: str = RECORDED, name: str = "complete blood count") -> Made:
    return Made(TASK, name, recorded, text)


@pytest.mark.parametrize(
    ("text", "similarity", "consistency"),
    [
        (CBC, 1, 1),
        (CBC.replace("14.2", "22.9"), 1, 1),
        (CBC.replace("14.2", "6.1"), 2 / 3, 1),
        (CBC.replace("58 %", "58 g/L"), 1, 0),
        (CBC.partition(";")[0], 1 / 3, 0),
        ("No growth.", 0, 0),
    ],
)
def test_rules_see_sides_of_ranges_and_units(
    text: str, similarity: float, consistency: float
) -> None:
    assert rules(made(text)) == {
        "similarity": pytest.approx(similarity),
        "consistency": consistency,
    }


def several(shift: float, width: float, n: int = 200) -> dict[str, Any]:
    random = Random(1)
    pairs = [(random.gauss(6, 1), random.gauss(6 + shift, width)) for _ in range(n)]
    return numbers(
        [made(f"cells {one:.3f} u", f"cells {other:.3f} u", "CBC") for other, one in pairs]
    )


def test_distance_and_spread_are_in_the_records_deviations() -> None:
    same, shifted, narrow = several(0, 1), several(2, 1), several(0, 0.1)
    assert same["wasserstein"] < 0.25
    assert same["floor"] < 0.35
    assert shifted["wasserstein"] == pytest.approx(2, abs=0.25)
    assert shifted["spread"] == pytest.approx(1, abs=0.15)
    assert narrow["spread"] == pytest.approx(0.1, abs=0.03)
    assert [*shifted["by_examination"]] == ["CBC: cells"]
