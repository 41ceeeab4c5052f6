"""What the tiny models of the doctor, the diagnosis agent and the simulator are made from."""

import re
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import pytest

from conditions.condition_types import Phrase
from conditions.table import load_tables
from consultation_agent import protocol as consultation
from diagnosis_agent import protocol as diagnosis
from diagnosis_agent.agent import AGENT
from diagnosis_agent.llm_simulator import SEPARATOR, prompt_for, split_range
from diagnosis_agent.record_simulator import Result
from diagnosis_agent.task import DiagnosisTask, task_of
from episodes.episode import Conversation
from episodes.text_loop import Malformed
from recipes.doctors import consultation_lessons, diagnosis_lessons
from recipes.doctors.speech import Speech
from recipes.doctors.world_lessons import MOST_EVENTS, partner_lessons

FEW = {"train": 3, "val": 2, "test": 4}  # rows drawn before the lessons
EVENT = re.compile(r"Exam name:\n(.+)\n(?:Reference Range:\n(.+)\n)?Exam results:\n\Z")


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch):
    monkeypatch.setattr(consultation_lessons, "ROWS", FEW)
    monkeypatch.setattr(diagnosis_lessons, "ROWS", FEW)


def text_of(told: Conversation) -> str:
    return "".join(str(message["content"]) for message in told.messages)


def replies(one: Conversation, read: Callable[[str], Any]) -> tuple[list[Any], list[Any]]:
    """What a conversation's doctor said, and what of it is learned."""
    said = [read(str(turn["content"])) for turn in one.messages if turn["role"] == "assistant"]
    return said, [reply for reply, learn in zip(said, one.learn, strict=True) if learn]


def test_right_consultations_teach_no_mistake_and_keep_to_the_budget():
    mistakes = 0
    for one in consultation_lessons.lessons(150, 0, Random(2)).right:
        said, learned = replies(one, consultation.read_reply)
        assert not any(isinstance(reply, Malformed) for reply in learned)
        mistakes += sum(isinstance(reply, Malformed) for reply in said)
        budget = re.search(r"共(\d)", one.messages[1]["content"])
        assert budget
        assert len(one.learn) <= int(budget[1])
        roles = [message["role"] for message in one.messages]
        assert roles == ["system", *["user", "assistant"] * len(one.learn)]
        assert isinstance(said[-1], consultation.Conclusion)
    assert mistakes


def test_right_diagnoses_end_with_one_and_teach_no_mistake():
    mistakes = unlearned = 0
    for one in diagnosis_lessons.lessons(60, 0, Random(1)).right:
        said, learned = replies(one, diagnosis.read_reply)
        assert isinstance(said[-1], diagnosis.Conclusion)
        assert not any(isinstance(reply, Malformed) for reply in learned)
        assert len(said) <= max(diagnosis_lessons.BUDGETS)
        assert len({reply.diagnosis for reply in learned}) == 1
        mistakes += sum(isinstance(reply, Malformed) for reply in said)
        unlearned += len(said) - len(learned)
    assert mistakes
    assert unlearned


def what_patients_say() -> list[Phrase]:
    tables = load_tables()
    values = (value for facet in tables.facets.values() for value in facet.values.values())
    return [*tables.complaints.values(), *tables.symptoms.values(), *values]


def test_no_patient_speaks_in_wordings_that_are_kept_for_the_test_file(monkeypatch):
    """Patients who speak as the record patient does."""
    shares = dict.fromkeys(consultation_lessons.SHARES, 0) | {"further": 50}
    for name, value in (("SHARES", shares), ("FLAWS", {"right": 100}), ("BUDGETS", (6,))):
        monkeypatch.setattr(consultation_lessons, name, value)
    speech = Speech(0, Random(0))
    phrases = what_patients_say()
    lists = [(one.zh, texts) for one in phrases for texts in (one.lay, one.longer) if texts]
    kept, others = (
        {text for name, texts in lists for text in speech.allowed(name, texts, wording)}
        for wording in ("unseen", "seen")
    )
    kept -= {text for text in kept if any(text in other for other in others)}
    kept -= {phrase.zh for phrase in phrases}
    assert len(kept) > 300
    lessons = consultation_lessons.lessons(200, 0, Random(1)).right
    told = "\n".join(text_of(one) for one in lessons)
    assert [text for text in kept if text in told] == []


@cache
def tasks() -> tuple[DiagnosisTask, ...]:
    return tuple(task_of(row) for row in AGENT.rows(AGENT.splits["val"])[:12])


def test_every_recorded_result_is_learned_once_and_others_are_normal():
    for task in tasks():
        asked = []
        for told in partner_lessons([task]):
            asked += [message["content"] for message in told.messages]
        names = [match[1] for part in asked if (match := EVENT.search(part))]
        answers = [part for part in asked if part.endswith(SEPARATOR)]
        learned = dict(zip(names, answers, strict=True))
        for name, text in task.results.items():
            assert learned[name] == split_range(text)[0] + SEPARATOR
        assert len(names) == len(learned) > len(task.results)


def test_a_lesson_without_ranges_is_what_the_model_is_asked():
    for told in partner_lessons(tasks()):
        text = re.sub(r"Reference Range:\n.+\n", "", text_of(told))
        task = next(one for one in tasks() if text.startswith(one.text) and one.reference in text)
        events = [part.partition("\nExam results:\n") for part in text.split("Exam name:\n")[1:]]
        results = [(name, said.removesuffix(SEPARATOR)) for name, _, said in events]
        *past, last = [Result(name, said, "recorded") for name, said in results]
        assert prompt_for(task, last.name, past) + last.text + SEPARATOR == text
        assert (told.raw, told.learn) == (True, [True] * len(events))
        assert len(events) <= MOST_EVENTS
