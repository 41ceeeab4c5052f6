"""What the diagnosis agent's tiny model is made from."""

from __future__ import annotations

from random import Random

import pytest

from diagnosis_agent.protocol import Conclusion, Order, read_reply
from episodes.episode import Conversation
from episodes.text_loop import Malformed
from recipes.doctors import diagnosis_lessons as recipe
from recipes.doctors.diagnosis_lessons import lessons

FEW = {"train": 3, "val": 2, "test": 4}  # rows drawn before the lessons


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch):
    monkeypatch.setattr(recipe, "ROWS", FEW)


def replies(one: Conversation) -> list[Order | Conclusion | Malformed]:
    return [
        read_reply(str(message["content"]))
        for message in one.messages
        if message["role"] == "assistant"
    ]


def learned(one: Conversation) -> list[Order | Conclusion | Malformed]:
    return [said for said, learn in zip(replies(one), one.learn, strict=True) if learn]


def test_right_lessons_end_with_a_diagnosis_and_teach_no_mistake():
    made = lessons(60, 0, Random(1)).right
    for one in made:
        assert isinstance(replies(one)[-1], Conclusion)
        assert not any(isinstance(said, Malformed) for said in learned(one))
        assert len(replies(one)) <= max(recipe.BUDGETS)
        assert (
            len({said.diagnosis for said in learned(one) if not isinstance(said, Malformed)}) == 1
        )
    assert any(isinstance(said, Malformed) for one in made for said in replies(one))
    assert any(len(replies(one)) > len(learned(one)) for one in made)
