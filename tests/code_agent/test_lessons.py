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
from code_agent.lessons import FLAWS, Teacher, names_of, slots_in
from code_agent.protocol import Action, Malformed, read_reply
from code_agent.task import read_rows
from common.settings import Settings
from data.ehr.hospital_questions import PREAMBLE, TEMPLATES
from episodes.episode import AgentError, Conversation

ROWS = read_rows(AGENT.splits["train"])


def replies(conversation: Conversation) -> list[str]:
    return [
        str(message["content"])
        for message in conversation.messages
        if message["role"] == "assistant"
    ]


def test_programs_of_training_give_their_names_back() -> None:
    for row in ROWS[::7]:
        assert slots_in(TEMPLATES[row["template"]], row["program"]), row["program"]
    assert {"drug", "lab", "diagnosis", "procedure"} <= names_of(ROWS).keys()


def test_a_slot_that_stands_twice_has_one_value() -> None:
    twice = {"program": "print('$drug', '$drug')"}
    assert slots_in(twice, f"{PREAMBLE}\nprint('ana', 'ana')") == {"drug": "ana"}
    assert slots_in(twice, f"{PREAMBLE}\nprint('ana', 'bel')") == {}


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


def test_what_a_lessons_program_prints_has_the_form_of_its_answer() -> None:
    teacher, kinds = Teacher(ROWS, Random(2)), set[str]()
    opens = {"set": "[", "list": "[", "table": "{"}
    for _ in range(50):
        run, answer, _ = teacher.right().messages[-3:]
        action = read_reply(str(run["content"]))
        assert isinstance(action, Action)
        [kind] = [one["kind"] for one in TEMPLATES.values() if slots_in(one, action.params["code"])]
        assert str(answer["content"]).startswith(opens.get(kind, "")), (kind, answer)
        kinds.add(kind)
    assert opens.keys() <= kinds


@pytest.mark.parametrize("flaw", FLAWS)
def test_every_flaw_is_learned_and_what_it_is_called(flaw: str) -> None:
    teacher = Teacher(ROWS, Random(3))
    for _ in range(20):
        conversation = teacher.flawed(flaw)
        said = [read_reply(text) for text in replies(conversation)]
        assert all(conversation.learn)
        assert isinstance(said[0], Malformed) == (flaw == "malformed")
        assert isinstance(said[-1], Action)
        assert said[-1].name == "submit"
        assert (len(said) == 1) == (flaw == "guess")


def test_gold_rows_are_supervised_data() -> None:
    settings = Settings.model_construct(
        **{name: field.get_default() for name, field in Settings.model_fields.items()}
    )
    [first, *_] = AGENT.teaching.demonstrations("policy", ROWS[:3], settings)
    assert [message["role"] for message in first.messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert first.learn == [True, True]
    with pytest.raises(AgentError, match="no demonstrations for the role 'patient'"):
        AGENT.teaching.demonstrations("patient", ROWS[:3], settings)


def test_a_file_of_episodes_is_read_or_named(tmp_path: Path) -> None:

    folder = tmp_path
    settings = Settings.model_construct(
        **{name: field.get_default() for name, field in Settings.model_fields.items()}
    )
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": str(Action("submit"))},
    ]
    (folder / "sft.jsonl").write_text(json.dumps({"messages": messages}) + "\n", encoding="utf-8")
    [kept] = AGENT.teaching.dialogues(folder / "sft.jsonl", "code", settings)
    assert (kept.messages, kept.learn) == (messages, [True])
    for text, said in (('{"messages": [{"role": "user"}]}\n', "line 1"), ("", "has no episodes")):
        (folder / "bad.jsonl").write_text(text, encoding="utf-8")
        with pytest.raises(AgentError, match=said):
            AGENT.teaching.dialogues(folder / "bad.jsonl", "code", settings)
