"""What a model of the patient, and of the doctor from dialogues of a file, is warmed up with."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from common.command import UsageError
from conditions.intake import consultations
from consultation_agent.agent import AGENT
from consultation_agent.llm_patient import WORDS, Said, messages_for
from consultation_agent.protocol import Conclusion, Question
from consultation_agent.task import task_of
from episodes.episode import Conversation
from tests.consultation_agent.cases import SETTINGS
from tests.corpora import cases_of, write_lines

END = Conclusion("Ankle sprain", "Rest it.").reply


def test_the_patients_lessons_have_the_form_of_a_served_patients_calls():
    rows = AGENT.rows(AGENT.splits["val"])[:3]
    told = list(AGENT.demonstrations("patient", rows, SETTINGS))
    shown = {str(messages_for(task_of(row), "", WORDS["served"])[1]["content"]) for row in rows}
    replies = [Said.model_validate_json(one.messages[2]["content"], strict=True) for one in told]
    assert {"informative", "compound", "off_topic"} <= {reply.kind for reply in replies}
    for one in told:
        system, user, _ = one.messages
        assert system["content"] == WORDS["served"]["system"]
        assert any(user["content"].startswith(record) for record in shown)
        assert one.learn == [True]
        question = user["content"].rpartition("医生问：")[2]
        assert 0 < len(question) <= WORDS["served"]["longest_question"]


def said(*texts: str) -> list[dict[str, str]]:
    return [
        {"role": ("user", "assistant")[number % 2], "content": text}
        for number, text in enumerate(texts)
    ]


def framed(tmp_path: Path, *dialogues: Any) -> list[Conversation]:
    file = write_lines(tmp_path / "dialogues.jsonl", dialogues)
    return list(AGENT.dialogues(file, SETTINGS))


def test_a_dialogue_is_framed_as_an_episode(tmp_path):
    texts = [
        "It hurts.",
        Question("Where?").reply,
        "My ankle.",
        Question("Since when?").reply,
        "Monday.",
        Question("A fall?").reply,
        "Yes.",
    ]
    [one] = framed(tmp_path, {"messages": said(*texts, END)})
    system, *rest = one.messages
    assert "诊断" in system["content"]
    assert [message["content"] for message in rest[1::2]] == [*texts[1::2], END]
    heard = [message["content"] for message in rest[::2]]
    assert [re.findall(r"第(\d)轮，共(\d)轮", text) for text in heard] == [
        [(str(n), "4")] for n in (1, 2, 3, 4)
    ]
    assert ["最后一轮" in text for text in heard] == [False, False, False, True]
    assert all(text in line for text, line in zip(texts[::2], heard, strict=True))


@pytest.mark.parametrize(("reply", "learned"), cases_of(__file__, "replies_to_learn"))
def test_only_replies_with_one_question_are_learned(reply, learned, tmp_path):
    [one] = framed(tmp_path, {"messages": said("It hurts.", reply, "There.", END)})
    assert one.learn == [learned, True]


NO_DIALOGUES: dict[str, Any] = {
    "no messages": {"text": "x"},
    "patient last": {"messages": said("It hurts.", END, "Thanks.")},
    "no text": {"messages": [*said("It hurts."), {"role": "assistant", "content": None}]},
}


@pytest.mark.parametrize("row", NO_DIALOGUES.values(), ids=NO_DIALOGUES)
def test_what_is_no_dialogue_is_one_line(row, tmp_path):
    with pytest.raises(UsageError, match=r"dialogues\.jsonl, line 2") as caught:
        framed(tmp_path, {"messages": said("It hurts.", END)}, row)
    assert "\n" not in str(caught.value)


def test_what_the_intake_writes_is_learned(tmp_path):
    source = tmp_path / "plain.jsonl"
    messages = [
        ("patient", "膝盖疼。"),
        ("doctor", "摔过吗？"),
        ("patient", "昨天摔了。"),
        ("doctor", "冰敷。"),
    ]
    turns = [{"role": role, "content": text} for role, text in messages]
    source.write_text(
        json.dumps({"messages": turns, "diagnosis": "膝扭伤"}, ensure_ascii=False), encoding="utf-8"
    )
    assert consultations.main([str(source), "--out", str(tmp_path / "out")]) == 0
    [one] = AGENT.dialogues(tmp_path / "out" / "dialogues.jsonl", SETTINGS)
    assert one.learn == [True, True]
