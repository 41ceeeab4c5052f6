"""Lessons of the bundled model are of training alone and are what an episode would be."""

import re
from itertools import chain, compress
from random import Random

from code_agent.agent import AGENT
from code_agent.protocol import Action, read_reply
from code_agent.task import read_rows
from recipes.hospital.lessons import Teacher, names_of

ROWS = read_rows(AGENT.splits["train"])


def test_no_name_and_no_wording_of_the_test_file_is_taught():
    teacher = Teacher(ROWS, Random(1))
    told = [str(teacher.right().messages[1]["content"]) for _ in range(400)]
    test = read_rows(AGENT.splits["test"])
    known = " | ".join(chain(*names_of(ROWS).values()))
    named = chain(*names_of(test).values())
    hidden = [name for name in named if len(name) > 3 and name not in known]
    assert len(hidden) > 20
    for name in hidden:
        assert not re.search(rf"\b{re.escape(name)}\b", "\n".join(told)), name
    asked = {text.rsplit("\nStep", 1)[0] for text in told}
    assert not asked & {row["question"] for row in test}


def test_a_right_lesson_runs_the_gold_program_and_hands_in():
    teacher = Teacher(ROWS, Random(2))
    for _ in range(50):
        conversation = teacher.right()
        replies = [one for one in conversation.messages if one["role"] == "assistant"]
        learned = compress(replies, conversation.learn)
        first, last = [read_reply(str(one["content"])) for one in learned]
        assert isinstance(first, Action)
        assert first.name == "validate_code"
        compile(first.params["code"], "program", "exec")
        assert last == Action("submit")
