"""Lessons of the bundled model are of training alone and are what an episode would be."""

import re
from random import Random

from code_agent.agent import AGENT
from code_agent.protocol import Action, read_reply
from code_agent.task import read_rows
from episodes.episode import Conversation
from recipes.hospital.lessons import Teacher, names_of

ROWS = read_rows(AGENT.splits["train"])


def replies(conversation: Conversation) -> list[str]:
    return [
        str(message["content"])
        for message in conversation.messages
        if message["role"] == "assistant"
    ]


def test_no_name_and_no_wording_of_the_test_file_is_taught():
    teacher = Teacher(ROWS, Random(1))
    told = [teacher.right().messages[1]["content"] for _ in range(400)]
    test = read_rows(AGENT.splits["test"])
    known = " | ".join(name for names in names_of(ROWS).values() for name in names)
    hidden = [
        name
        for names in names_of(test).values()
        for name in names
        if len(name) > 3 and name not in known
    ]
    assert len(hidden) > 20
    for name in hidden:
        assert not any(re.search(rf"\b{re.escape(name)}\b", str(text)) for text in told), name
    assert not {row["question"] for row in test} & {
        str(text).rsplit("\nStep", 1)[0] for text in told
    }


def test_a_right_lesson_runs_the_gold_program_and_hands_in():
    teacher = Teacher(ROWS, Random(2))
    for _ in range(50):
        conversation = teacher.right()
        learned = [
            text
            for text, learn in zip(replies(conversation), conversation.learn, strict=True)
            if learn
        ]
        first, last = map(read_reply, learned)
        assert isinstance(first, Action)
        assert first.name == "validate_code"
        compile(first.params["code"], "program", "exec")
        assert last == Action("submit")
