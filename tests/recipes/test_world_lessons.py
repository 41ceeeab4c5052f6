"""What a model of the simulator learns is what it will be asked."""

from __future__ import annotations

import re
from functools import cache

from diagnosis_agent.agent import AGENT
from diagnosis_agent.llm_simulator import SEPARATOR, prompt_for, split_range
from diagnosis_agent.simulator import Result
from diagnosis_agent.task import DiagnosisTask, task_of
from episodes.episode import Conversation
from recipes.doctors.world_lessons import MOST_EVENTS, partner_lessons

EVENT = re.compile(r"Exam name:\n(.+)\n(?:Reference Range:\n(.+)\n)?Exam results:\n\Z")


@cache
def tasks() -> tuple[DiagnosisTask, ...]:
    return tuple(task_of(row) for row in AGENT.rows(AGENT.splits["val"])[:12])


def text_of(told: Conversation) -> str:
    return "".join(str(message["content"]) for message in told.messages)


def test_every_recorded_result_is_learned_once_and_others_are_normal():
    for task in tasks():
        asked = [
            message["content"] for told in partner_lessons([task]) for message in told.messages
        ]
        names = [match[1] for part in asked if (match := EVENT.search(part))]
        learned = dict(
            zip(names, (part for part in asked if part.endswith(SEPARATOR)), strict=True)
        )
        assert {
            name: split_range(text)[0] + SEPARATOR for name, text in task.results.items()
        }.items() <= learned.items()
        assert len(names) == len(learned) > len(task.results)


def test_a_lesson_without_ranges_is_what_the_model_is_asked():
    for told in partner_lessons(tasks()):
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
