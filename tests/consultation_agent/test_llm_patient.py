"""The patient that is a model, over HTTP: what it is shown and says, leaks, failures."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from common.settings import Settings
from consultation_agent.agent import AGENT
from consultation_agent.environment import ConsultationEnvironment
from consultation_agent.llm_patient import ATTEMPTS, WORDS, LLMPatient, clean
from consultation_agent.protocol import Conclusion, Question
from consultation_agent.record_patient import Exchange, Reply
from consultation_agent.task import ConsultationTask, task_of
from episodes.agent import Service
from episodes.episode import AgentError, Scored, ServiceError
from episodes.outcomes import UNSCORED
from episodes.play_and_score import play
from episodes.script import Script
from tests.common.llm_server import KEY, Fault
from tests.consultation_agent.cases import SETTINGS, reference_row, task_with

pytestmark = pytest.mark.usefixtures("no_waiting")
TASK = replace(
    task_with("appendicitis"),
    question="医生，我肚子疼。",
    age=31,
    sex="female",
    words={"place": "肚子右下角", "onset": "就这几个小时", "fever": "身上发烫"},
    symptoms={"nausea": False, "fever": True},
    distinguishing=("place", "fever"),
)
PLACE = {"kind": "informative", "facets": ["place"], "text": "肚子右下角。"}
Ask = Callable[..., Reply]


def saying(**reply: Any) -> Callable[[dict[str, Any]], str]:
    return lambda body: json.dumps({**PLACE, **reply}, ensure_ascii=False)


@pytest.fixture
def settings(llm, tmp_path):
    llm.answer = saying()
    where = {
        "patient_model": "openai/stand-in",
        "patient_base_url": llm.url,
        "patient_api_key": SecretStr(KEY),
    }
    return SETTINGS.model_copy(update=where | {"llm_cache": tmp_path / "cache.sqlite"})


@pytest.fixture
def ask(settings):
    """The answer to the last of some questions, after the others."""
    patient = LLMPatient(settings, "llm", None)

    def ask(*questions: str, task: ConsultationTask = TASK) -> Reply:
        asked: list[Exchange] = []
        for question in questions:
            asked.append(Exchange(question, asyncio.run(patient.answer(task, question, asked))))
        return asked[-1].reply

    return ask


def consultation(settings: Settings, *replies: str, **options: str) -> Scored:
    environment = ConsultationEnvironment(settings, {"patient": "llm", **options})
    policy = Script(replies, max_turns=4)
    return asyncio.run(play(environment, TASK, environment.play(TASK, policy), policy, 60))


END = Conclusion(TASK.reference, TASK.recommendation).reply


def test_it_is_shown_the_record_and_not_the_diagnosis(llm, ask):
    assert ask("具体在什么部位？") == Reply("informative", "肚子右下角。", ("place",))
    [body] = llm.requests
    system, user = body["messages"]
    assert system["content"] == WORDS["llm"]["system"].strip()
    assert user["content"].splitlines() == [
        "主诉：医生，我肚子疼。",
        "age（年龄）：31岁",
        "sex（性别）：女",
        "nausea（恶心）：没有",
        "fever（发烧）：身上发烫",
        "place（部位）：肚子右下角",
        "onset（起病）：就这几个小时",
        "医生问：具体在什么部位？",
    ]
    assert body["response_format"]["json_schema"]["strict"]
    assert body["temperature"] == 0
    assert llm.keys == {f"Bearer {KEY}"}


def test_a_row_without_facets_is_shown_by_question_and_sentence(llm, ask):
    row = reference_row(
        ground_truth={"diagnosis": "sprained ankle", "recommendation": "ice"},
        enhanced_description="I twisted it. They called it a Sprained  ankle.",
    )
    llm.answer = saying(facets=["exchange 0", "place"], text="Yes, on the stairs.")
    assert ask("Twisted?", task=task_of(row)).facets == ("exchange 0",)
    shown = llm.requests[0]["messages"][1]["content"]
    assert "exchange 0（Hello, did you twist it?）：Yes, on the stairs." in shown
    sentences = [line for line in shown.splitlines() if line.startswith("sentence")]
    assert sentences == ["sentence 0：I twisted it."]
    assert "ankle." not in shown


@pytest.mark.parametrize(
    "named", ["应该是急性阑尾炎吧。", "医生说是阑 尾-炎。", "I have Appendicitis."]
)
def test_a_leak_is_asked_away_once(named, llm, ask):
    llm.answer = lambda body: saying(text=named if len(body["messages"]) == 2 else "右下边疼。")(
        body
    )
    assert ask("哪里疼？") == Reply("informative", "右下边疼。", ("place",))
    again = llm.requests[1]["messages"]
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    assert json.loads(again[2]["content"])["text"] == named


def test_a_leak_that_stays_is_struck_out_counted_and_scored(llm, settings):
    llm.answer = saying(text="是急性阑尾炎，右下边疼。")
    scored = consultation(settings, Question("哪里疼？").reply, END)
    assert len(llm.requests) == 2
    heard = str(scored.episode.messages[3]["content"])
    assert "阑尾炎" not in heard
    assert "右下边疼" in heard
    assert scored.reward.score == pytest.approx(1)
    facts = ConsultationEnvironment(settings, {}).record(TASK, scored.episode)["facts"]
    assert facts["patient_leak"] == 1


def test_a_diagnosis_that_the_doctor_has_named_is_no_leak(llm, ask):
    llm.answer = saying(kind="unknown", facets=[], text="是不是阑尾炎我不知道。")
    assert ask("会不会是急性阑尾炎？") == Reply("unknown", "是不是阑尾炎我不知道。")
    assert ask("会不会是阑尾炎？", "家里有人得过吗？").leaked is False
    assert ask("家里有人得过吗？").leaked is True


@pytest.mark.parametrize("again", ["哪里 疼？", "疼的位置是哪儿？"])
def test_what_was_told_is_not_told_as_new(again, ask):
    assert ask("哪里疼？", again) == Reply("repeated", "刚才说过了，肚子右下角。", ("place",))
    assert ask("哪里疼？", again, again).text == "刚才说过了，肚子右下角。"


@pytest.mark.parametrize(
    ("fault", "cause", "requests"),
    [
        (Fault(401), "patient_failed", 1),
        (Fault(200, text="我肚子疼"), "patient_malformed", ATTEMPTS),
    ],
)
def test_a_patient_that_keeps_failing_leaves_the_episode_unscored(
    fault, cause, requests, llm, settings
):
    llm.faults = [fault] * 20
    scored = consultation(settings, Question("哪里疼？").reply, END)
    assert (scored.reward.total, scored.reward.unscored) == (None, cause)
    assert cause in UNSCORED
    assert len(llm.requests) == requests
    assert KEY not in scored.detail


def test_a_dead_patient_is_told_in_one_line_whatever_it_said_before(llm, settings):
    environment = ConsultationEnvironment(settings, {"patient": "llm"})
    asyncio.run(environment.check())
    llm.faults = [Fault(503)] * 20
    with pytest.raises(ServiceError, match="PATIENT_BASE_URL") as caught:
        asyncio.run(environment.check())
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)


def test_the_served_patient_is_asked_at_its_address_in_its_own_words(llm, settings):
    elsewhere = settings.model_copy(
        update={"patient_base_url": "http://127.0.0.1:9/v1", "patient_model": None}
    )
    options = {"patient": "served", "patient_model": "models/patient"}
    assert AGENT.services(elsewhere, options) == [Service("patient_url", "models/patient")]
    environment = ConsultationEnvironment(elsewhere, options | {"patient_url": llm.url})
    assert (
        asyncio.run(environment.partner.answer(TASK, "哪里疼？" + "疼" * 300, [])).text
        == "肚子右下角。"
    )
    [body] = llm.requests
    assert body["model"] == "policy"
    assert body["messages"][0]["content"] == WORDS["served"]["system"]
    assert (
        len(body["messages"][1]["content"].splitlines()[-1])
        == len("医生问：") + WORDS["served"]["longest_question"]
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"patient": "llm"}, "--patient llm .*PATIENT_MODEL"),
        ({"patient": "served"}, "--patient served .*--patient-model"),
        ({"patient": "record", "patient_model": "m"}, "--patient-model m"),
    ],
)
def test_wrong_usage_is_one_line(options, said):
    bare = SETTINGS
    with pytest.raises(AgentError, match=said):
        ConsultationEnvironment(bare, options)


@given(st.text(max_size=300))
def test_no_question_holds_chat_tokens_lines_or_half_characters(question):
    heard = clean(question)
    assert not {*"<>|\n"} & {*heard}
    heard.encode("utf-8")
