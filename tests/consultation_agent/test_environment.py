"""A consultation is played within its budget, and its events say what happened."""

import asyncio

import pytest

from consultation_agent.agent import AGENT
from consultation_agent.environment import ConsultationEnvironment
from consultation_agent.protocol import Conclusion, Malformed, Question
from consultation_agent.record_patient import Exchange
from consultation_agent.task import task_of
from episodes.episode import Episode
from episodes.script import Script
from tests.consultation_agent.cases import SETTINGS, reference_row, task_with

TASK = task_with("appendicitis")
END = Conclusion("阑尾炎", TASK.recommendation).reply


def environment(**options: str) -> ConsultationEnvironment:
    return ConsultationEnvironment(SETTINGS, options)


def played(*texts: str, **options: str) -> Episode:
    return asyncio.run(environment(**options).play(TASK, Script(texts, max_turns=4)))


def test_a_whole_consultation():
    episode = played(Question("在什么部位？").reply, "哪里？", Question("发烧吗？").reply, END)
    assert episode.stop_reason == "answered"
    assert [type(event) for event in episode.events] == [Exchange, Malformed, Exchange, Conclusion]
    heard = [message["content"] for message in episode.messages if message["role"] == "user"]
    assert heard[0].endswith("第1轮，共4轮。")
    assert TASK.question in heard[0]
    assert TASK.words["place"] in heard[1]
    assert "第2轮，共4轮" in heard[1]
    assert "没有<answer>" in heard[2]
    assert heard[3].endswith("最后一轮，请给出诊断和建议。")


def test_facts_and_record():
    own, episode = (
        environment(),
        played(Question("在什么部位？").reply, Question("在哪里？").reply, END),
    )
    episode.reply_tokens = [9, 8, 7]
    facts = own.record(TASK, episode)["facts"]
    assert facts["diagnosis_accuracy"] == 1
    assert facts["useful_questions"] == facts["repeated_questions"] == 0.5
    dialogue = own.record(TASK, episode)["dialogue"]
    assert [turn["role"] for turn in dialogue] == ["doctor", "patient"] * 2 + ["doctor"]
    assert dialogue[-1]["diagnosis"] == "阑尾炎"
    assert [turn["tokens"] for turn in dialogue if turn["role"] == "doctor"] == [9, 8, 7]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        ([END], "right"),
        ([Conclusion("阑尾炎", "多喝水").reply], "wrong_advice"),
        ([Conclusion("急性胆囊炎", "多喝水").reply], "asked_too_little"),
        ([""] * 4, "no_diagnosis"),
    ],
)
def test_kinds_of_failure(texts, kind):
    own, episode = environment(), played(*texts)
    record = own.record(TASK, episode)
    assert AGENT.failure(record) == kind


def test_rows_without_facets_are_played():
    task, own = task_of(reference_row()), environment()
    texts = (
        Question("Did you twist it?").reply,
        Conclusion(task.reference, task.recommendation).reply,
    )
    episode = asyncio.run(own.play(task, Script(texts, max_turns=4)))
    assert "on the stairs" in episode.messages[3]["content"]
    assert own.record(task, episode)["facts"]["facet_recall"] is None
    wrong = asyncio.run(own.play(task, Script([Conclusion("a cold", "rest").reply], max_turns=4)))
    assert AGENT.failure(own.record(task, wrong)) == "wrong_diagnosis"
    assert asyncio.run(own.score(task, episode)).score == pytest.approx(1)


def test_other_prompts(tmp_path):
    file = tmp_path / "prompts.toml"
    file.write_text(
        'version = "theirs"\nsystem = "You are a doctor."\nfirst = "Patient\'s description: {complaint}"\n'
    )
    episode = played(END, prompts=str(file))
    assert episode.messages[0]["content"] == "You are a doctor."
    assert episode.messages[1]["content"] == f"Patient's description: {TASK.question}"
    assert environment(prompts=str(file)).description()["prompts"].startswith("theirs ")
    assert environment(prompts=str(file)).description() != environment().description()
