"""Lessons are of training alone, are what an episode would be, and hold the imperfections they are
said to.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import pytest

from code_agent.agent import AGENT
from code_agent.lessons import Teacher, names_of
from code_agent.protocol import Action, read_reply
from code_agent.task import read_rows
from episodes.episode import AgentError, Conversation
from tests.code_agent.conftest import SETTINGS

ROWS = read_rows(AGENT.splits["train"])


def replies(conversation: Conversation) -> list[str]:
    return [
        str(message["content"])
        for message in conversation.messages
        if message["role"] == "assistant"
    ]


def test_no_name_and_no_wording_of_the_test_file_is_taught() -> None:
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


def test_a_right_lesson_runs_the_gold_program_and_hands_in() -> None:
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


def test_gold_rows_are_supervised_data() -> None:
    [first, *_] = AGENT.teaching.demonstrations("policy", ROWS[:3], SETTINGS)
    assert first.learn == [True, True]
    with pytest.raises(AgentError, match="'patient'"):
        AGENT.teaching.demonstrations("patient", ROWS[:3], SETTINGS)


def test_a_file_of_episodes_is_read_or_named(tmp_path: Path) -> None:

    folder = tmp_path
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": str(Action("submit"))},
    ]
    (folder / "sft.jsonl").write_text(json.dumps({"messages": messages}) + "\n", encoding="utf-8")
    [kept] = AGENT.teaching.dialogues(folder / "sft.jsonl", "code", SETTINGS)
    assert (kept.messages, kept.learn) == (messages, [True])
    for text, said in (('{"messages": [{"role": "user"}]}\n', "line 1"), ("", "has no episodes")):
        (folder / "bad.jsonl").write_text(text, encoding="utf-8")
        with pytest.raises(AgentError, match=said):
            AGENT.teaching.dialogues(folder / "bad.jsonl", "code", SETTINGS)
