"""What the consultation agent's tiny model is made from."""

from __future__ import annotations

import re
from random import Random

import pytest

from conditions.condition_types import Phrase
from conditions.table import load_tables
from consultation_agent.protocol import Conclusion, Malformed, Question, read_reply
from episodes.episode import Conversation
from recipes.doctors import consultation_lessons as recipe
from recipes.doctors.consultation_lessons import lessons
from recipes.doctors.speech import Speech

FEW = {"train": 3, "val": 2, "test": 4}  # rows drawn before the lessons


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch):
    monkeypatch.setattr(recipe, "ROWS", FEW)


def replies(one: Conversation) -> list[Question | Conclusion | Malformed]:
    return [
        read_reply(message["content"]) for message in one.messages if message["role"] == "assistant"
    ]


def learned(one: Conversation) -> list[Question | Conclusion | Malformed]:
    return [said for said, learn in zip(replies(one), one.learn, strict=True) if learn]


def plain(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Patients who speak as the record patient does, and flawed demonstrations of one kind."""
    monkeypatch.setattr(recipe, "SHARES", dict.fromkeys(recipe.SHARES, 0))
    monkeypatch.setattr(recipe, "FLAWS", {kind: 100})
    monkeypatch.setattr(recipe, "BUDGETS", (6,))


def test_right_lessons_teach_no_mistake_and_keep_to_the_budget():
    made = lessons(150, 0, Random(2)).right
    assert not any(isinstance(said, Malformed) for one in made for said in learned(one))
    assert any(isinstance(said, Malformed) for one in made for said in replies(one))
    for one in made:
        budget = re.search(r"共(\d)", one.messages[1]["content"])
        assert budget
        assert len(one.learn) <= int(budget[1])
        roles = [message["role"] for message in one.messages]
        assert roles == ["system", *["user", "assistant"] * len(one.learn)]
        assert isinstance(replies(one)[-1], Conclusion)


def what_patients_say() -> list[Phrase]:
    tables = load_tables()
    values = (value for facet in tables.facets.values() for value in facet.values.values())
    return [*tables.complaints.values(), *tables.symptoms.values(), *values]


def test_no_patient_speaks_in_wordings_that_are_kept_for_the_test_file(monkeypatch):
    plain(monkeypatch, "right")
    monkeypatch.setitem(recipe.SHARES, "further", 50)
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
    told = "\n".join(
        message["content"]
        for one in lessons(200, 0, Random(1)).right
        for message in one.messages[1:]
    )
    assert [text for text in kept if text in told] == []
