"""A case is played within its budget, and its events say what happened."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from diagnosis_agent.agent import AGENT
from diagnosis_agent.environment import DiagnosisEnvironment
from diagnosis_agent.protocol import Conclusion, Order
from diagnosis_agent.record_simulator import Exchange
from diagnosis_agent.single_turn import Next
from episodes.episode import AgentError, Episode
from episodes.script import Script
from episodes.text_loop import Malformed
from tests.diagnosis_agent.cases import SETTINGS, task_with, tasks

TASK = task_with("appendicitis")
END = Conclusion("appendicitis", "it fits").reply


def order(name: str) -> str:
    return Order("unknown", name, "to see").reply


def environment(evaluating: bool = True, **options: Any) -> DiagnosisEnvironment:
    return DiagnosisEnvironment(SETTINGS, options, evaluating)


def played(*texts: str, max_turns: int = 4, **options: Any) -> Episode:
    return asyncio.run(environment(**options).play(TASK, Script(texts, max_turns)))


def record(episode: Episode) -> dict[str, Any]:
    return environment().record(TASK, episode)


def test_a_whole_case():
    episode = played(order("CBC"), "CRP?", order("full blood count"), END)
    assert episode.stop_reason == "answered"
    assert [type(event) for event in episode.events] == [Exchange, Malformed, Exchange, Conclusion]
    heard = [str(message["content"]) for message in episode.messages if message["role"] == "user"]
    assert heard[0] == f"{TASK.question}\nTurn 1 of 4."
    assert TASK.results["complete blood count"] in heard[1]
    assert "Name one examination" in heard[2]
    assert heard[3].endswith("Turn 4 of 4.\nLast turn: give the final diagnosis.")


@pytest.mark.parametrize(
    ("last", "stop"), [(order("CBC"), "bad_reply"), ("", "no_answer"), ("hm", "bad_reply")]
)
def test_the_last_turn_is_for_the_diagnosis_and_without_it_a_case_is_wrong(last, stop):
    episode = played(*[order("CBC")] * 3, last)
    assert (episode.stop_reason, episode.answer) == (stop, None)
    assert record(episode)["facts"]["accuracy"] == 0
    assert record(episode)["facts"]["accuracy_concluded"] is None


def test_demonstrations_keep_to_the_budget():
    """They would show what no policy can do."""
    small = SETTINGS.model_copy(update={"max_turns": 2})
    rows = AGENT.rows(AGENT.splits["val"])[:8]
    told = AGENT.demonstrations("policy", rows, small)
    assert {len(conversation.learn) for conversation in told} == {2}


def test_facts_record_and_groups():
    episode = played(order(TASK.key[0]), order(TASK.key[0]), order("telepathy"), END)
    found = record(episode)
    for share in ("repeated_examinations", "unavailable_examinations", "exam_precision"):
        assert found["facts"][share] == pytest.approx(1 / 3)
    assert found["facts"]["exam_recall"] == pytest.approx(1 / 3)
    assert [turn["role"] for turn in found["dialogue"]] == ["doctor", "simulator"] * 3 + ["doctor"]
    said = [turn["content"] for turn in found["dialogue"] if turn["role"] == "doctor"]
    assert said == [one["content"] for one in episode.messages if one["role"] == "assistant"]


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("right", [END]),
        ("ordered_too_little", [Conclusion("migraine", "it fits").reply]),
        ("wrong_diagnosis", [*map(order, TASK.key), Conclusion("migraine", "it fits").reply]),
        ("no_diagnosis", [""] * 4),
    ],
)
def test_kinds_of_failure(kind, texts):
    assert AGENT.failure(record(played(*texts))) == kind


def test_single_turns_are_asked_at_every_point_of_the_history():
    script = Script([order(TASK.key[2]), order(TASK.key[0]), order(TASK.key[2]), END], 6)
    episode = asyncio.run(environment(single_turn=True).play(TASK, script))
    assert [event.hit for event in episode.events if isinstance(event, Next)] == [True, False, True]
    facts = record(episode)["facts"]
    assert (facts["accuracy"], facts["next_examination_hit"]) == (1, pytest.approx(2 / 3))
    renal = replace(TASK, key=("renal function tests",))
    script = Script([order("basic metabolic panel"), END], 6)
    episode = asyncio.run(environment(single_turn=True).play(renal, script))
    assert [event.hit for event in episode.events if isinstance(event, Next)] == [True]


@pytest.fixture
def with_rubrics(llm, tmp_path, no_waiting):
    path = tmp_path / "rubrics.json"
    criteria = [{"criterion": "orders a CBC", "weight": 3}, {"criterion": "no CT first"}]
    path.write_text(json.dumps({TASK.id: criteria}))
    how = {"teacher_model": "openai/stand-in", "teacher_base_url": llm.url}
    settings = SETTINGS.model_copy(update=how)
    return DiagnosisEnvironment(settings, {"rubrics": str(path)}, evaluating=True)


def test_rubrics_are_weighed(llm, with_rubrics):
    own = with_rubrics
    own.judge = None
    llm.answer = lambda body: '{"met_1":1,"met_2":0}'
    weighed = asyncio.run(own.score(TASK, played(order("CBC"), END)))
    assert weighed.measures == {"rubric_score": 0.75}
    read = "\n".join(str(one["content"]) for body in llm.requests for one in body["messages"])
    assert '"work-up": "user: ' in read, "it begins with the case, not with the policy's own prompt"
    other = tasks()[0] if tasks()[0].id != TASK.id else tasks()[1]
    assert asyncio.run(own.score(other, played(END))).measures == {}
    llm.answer = lambda body: '{"met_1":1}'
    assert asyncio.run(own.score(TASK, played(order("CRP"), END))).unscored == "judge_malformed"


def test_rubrics_are_not_asked_about_an_episode_that_has_no_score(llm, with_rubrics):
    """Their requests would be paid for, and their cause would stand for the first one."""
    llm.answer = lambda body: "I cannot say"
    reward = asyncio.run(with_rubrics.score(TASK, played(order("CBC"), END)))
    assert (reward.unscored, reward.counters["malformed"]) == ("judge_malformed", 0)
    assert llm.requests
    assert not [asked for asked in llm.requests if "orders a CBC" in json.dumps(asked)]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"case-1": []}', '{"case-1": [{"criterion": "x", "weight": 0}]}']
)
def test_rubrics_that_cannot_be_used_are_refused(tmp_path, text):
    path = tmp_path / "rubrics.json"
    path.write_text(text)
    with pytest.raises(AgentError, match="TEACHER_MODEL"):
        environment(rubrics=str(path))
    judged = SETTINGS.model_copy(update={"teacher_model": "openai/x"})
    with pytest.raises(AgentError, match=r"rubrics\.json"):
        DiagnosisEnvironment(judged, {"rubrics": str(path)}, True)


@pytest.mark.parametrize(
    "options", [{"single_turn": True}, {"rubrics": "x"}, {"simulator_model": "x"}]
)
def test_flags_without_use_are_refused(options):
    with pytest.raises(AgentError):
        environment(evaluating=False, **options)
