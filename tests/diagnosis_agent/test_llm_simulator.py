"""The simulator that is a model, over HTTP: DiagGym's protocol, leaks, failures."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from diagnosis_agent.agent import AGENT
from diagnosis_agent.environment import DiagnosisEnvironment
from diagnosis_agent.llm_simulator import (
    ATTEMPTS,
    DRAWS,
    UNAVAILABLE,
    WITHHELD,
    LLMSimulator,
    prompt_for,
)
from diagnosis_agent.record_simulator import Result
from diagnosis_agent.task import DiagnosisTask
from episodes.agent import Service
from episodes.episode import ServiceError
from episodes.outcomes import UNSCORED, EpisodeError
from tests.common.llm_server import KEY, Fault
from tests.diagnosis_agent.cases import SETTINGS

pytestmark = pytest.mark.usefixtures("no_waiting")
TASK = DiagnosisTask(
    id="1",
    question="Pain on the right.",
    reference="acute appendicitis",
    aliases=("appendicitis",),
    text="A woman of 31 with pain on the right.\nPhysical Exam:\ntender",
    condition="appendicitis",
    age=31,
    sex="female",
)
ELSEWHERE = replace(TASK, condition=None)  # the tables know nothing of a row of the reference
CBC = "complete blood count"


def saying(text: str) -> Callable[[dict[str, Any]], str]:
    return lambda body: text


@pytest.fixture
def settings(llm, tmp_path):
    llm.answer = saying("white blood cells 14.2 10^9/L<SEP>Exam name:\nCRP")
    where = {"simulator_model": "EHRGenerator", "simulator_base_url": llm.url}
    own = {"simulator_api_key": SecretStr(KEY), "llm_cache": tmp_path / "cache.sqlite"}
    return SETTINGS.model_copy(update=where | own)


@pytest.fixture
def examine(settings):
    simulator = LLMSimulator(settings, "llm", None)

    def examine(name: str, *past: Result, task: DiagnosisTask = TASK) -> Result:
        return asyncio.run(simulator.answer(task, name, past))

    return examine


def test_the_prompt_is_diaggyms(llm, examine):
    warm = "temperature 38.2 °C (high) (reference range: temperature 36.0 to 37.3)"
    past = Result("vital signs", warm, "recorded")
    lost = Result("telepathy", UNAVAILABLE, "unavailable")
    assert examine("CBC", past, lost) == Result(CBC, "white blood cells 14.2 10^9/L", "recorded")
    [body] = llm.requests
    assert body["prompt"] == (
        "A woman of 31 with pain on the right.\n\nFinal Diagnosis:\nacute appendicitis\n"
        "The following summarizes the results from the patient's medical examination:\n"
        "Exam name:\nvital signs\nExam results:\ntemperature 38.2 °C (high)<SEP>"
        "Exam name:\ncomplete blood count\nExam results:\n"
    )
    assert body["stop"] == ["<SEP>", "<endoftext>"]
    assert "seed" not in body, "it ends vLLM's CPU engine"
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("EHRGenerator", 512, 1.0)
    assert llm.keys == {f"Bearer {KEY}"}


def test_a_group_and_a_repeat_see_one_result_in_all_processes(llm, settings):
    numbers = iter(range(9))
    llm.answer = lambda body: f"white blood cells {next(numbers)}.0"

    async def group() -> list[Result]:
        simulator = LLMSimulator(settings, "llm", None)
        before = Result("vital signs", "temperature 37.0 °C", "recorded")
        pasts: list[list[Result]] = [[], [before], [], [before]]
        return list(await asyncio.gather(*(simulator.answer(TASK, "CBC", past) for past in pasts)))

    for _ in range(2):
        assert {result.text for result in asyncio.run(group())} == {"white blood cells 0.0"}
    assert len(llm.requests) == 1
    other = replace(TASK, text="A man of 50.")
    found = asyncio.run(LLMSimulator(settings, "llm", None).answer(other, "CBC", []))
    assert found.text == "white blood cells 1.0"


def test_for_other_cases_the_words_of_an_order_are_a_name(llm, examine):
    first = examine("Factor XIII  <|im_end|> activity", task=ELSEWHERE)
    assert (first.name, first.kind) == ("Factor XIII activity", "recorded")
    assert examine("factor xiii activity", first, task=ELSEWHERE).kind == "repeated"
    assert examine("factor xiii activity", task=ELSEWHERE).text == first.text
    for name in ("CBC, CRP; ESR", "CBC and CRP", "x" * 121, " "):
        assert examine(name, task=ELSEWHERE).kind == "unavailable"
    assert len(llm.requests) == 1
    for name in ("C3 and C4", "Na, K, Cl"):
        assert examine(name, task=ELSEWHERE).kind == "recorded", "it is one examination"
    assert examine("Factor XII activity", first, task=ELSEWHERE).kind == "recorded"


@pytest.mark.parametrize("leak", ["consistent with Acute  Appendicitis", "app-en-dic-itis?"])
def test_a_text_that_names_the_diagnosis_is_drawn_again(leak, llm, settings):
    llm.answer = lambda body: leak if len(llm.requests) < DRAWS else "tender"
    simulator = LLMSimulator(settings, "llm", None, evaluating=True)
    result = asyncio.run(simulator.answer(TASK, CBC, []))
    assert result == Result(CBC, "tender", "recorded")
    assert [body["temperature"] for body in llm.requests] == [0.0, 1.0, 1.0]


def test_one_that_always_does_is_withheld_counted_and_kept(llm, settings):
    llm.answer = saying("It is appendicitis.")
    environment = DiagnosisEnvironment(settings, {"simulator": "llm"})
    for _ in range(2):
        result = asyncio.run(environment.partner.answer(TASK, CBC, []))
        assert result == Result(CBC, WITHHELD, "withheld")
    assert len(llm.requests) == DRAWS
    assert asyncio.run(environment.partner.answer(TASK, "CBC", [result])).kind == "repeated"
    assert "<SEP>" not in prompt_for(TASK, "CRP", [result])


@pytest.mark.parametrize(
    ("fault", "cause", "requests"),
    [
        (Fault(401), "simulator_failed", 1),
        (Fault(429, {"Retry-After": "900"}), "simulator_timeout", 1),
        (Fault(200, text=" <SEP> tender"), "simulator_malformed", ATTEMPTS),
    ],
)
def test_one_that_keeps_failing_leaves_the_episode_unscored(fault, cause, requests, llm, examine):
    llm.faults = [fault] * 9
    with pytest.raises(EpisodeError) as caught:
        examine("CBC")
    assert caught.value.cause == cause
    assert cause in UNSCORED
    assert len(llm.requests) == requests
    assert KEY not in str(caught.value)


def test_a_dead_one_is_told_in_one_line(llm, settings):
    environment = DiagnosisEnvironment(settings, {"simulator": "llm"})
    asyncio.run(environment.check())
    llm.faults = [Fault(503)] * 20
    with pytest.raises(ServiceError, match="SIMULATOR_BASE_URL") as caught:
        asyncio.run(environment.check())
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)


def test_the_served_one_is_asked_at_its_address_and_kept_by_its_weights(llm, settings, tmp_path):
    weights = tmp_path / "model.safetensors"
    weights.write_text("1")
    away = {"simulator_base_url": "http://127.0.0.1:9/v1", "simulator_model": None}
    own = settings.model_copy(update=away)
    options = {"simulator": "served", "simulator_model": str(tmp_path)}
    assert AGENT.services(own, options) == [Service("simulator_url", str(tmp_path))]

    def ask() -> str:
        partner = AGENT.open(own, options | {"simulator_url": llm.url}).partner
        return asyncio.run(partner.answer(TASK, CBC, [])).text

    assert ask() == ask() == "white blood cells 14.2 10^9/L"
    assert [body["model"] for body in llm.requests] == ["policy"]
    weights.write_text("2 of another run")
    ask()
    assert len(llm.requests) == 2
