"""Whole evaluations of endpoints with quirks, over HTTP: scored, or unscored with the cause."""

import json
from typing import Any

import pytest

from tests.common.llm_server import Fault, LLMServer, completion
from tests.corpora import cases_of
from tests.evaluation.evaluations import run
from tests.serving import serving
from tests.sql_agent.small_database import STORAGE

SQL = cases_of(__file__, "questions")[0]["sql"]
ANSWER = f"朵莎洛片的贮藏方法：{STORAGE}"


def call(sql: str, **known_by: Any) -> dict[str, Any]:
    name, arguments = "query_database_by_sql", json.dumps({"sql": sql})
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **known_by}


def reply(finish: str = "stop", **message: Any) -> Fault:
    body = json.loads(completion(""))
    body["choices"][0] |= {"message": {"role": "assistant", **message}, "finish_reason": finish}
    return Fault(200, body=json.dumps(body))


def stream(*calls: dict[str, Any]) -> Fault:
    events = [{"choices": [{"index": 0, "delta": {"tool_calls": [one]}}]} for one in calls]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return Fault(200, {"Content_Type": "text/event-stream"}, "".join([*lines, "data: [DONE]\n\n"]))


ASKS = reply("tool_calls", content=None, tool_calls=[call(SQL, id="c1")])
SAYS = reply(content=ANSWER)
THINKS = json.loads(ASKS.body) | {"usage": {"prompt_tokens": 9, "completion_tokens": 2000}}
TWICE = stream(call("SELECT 1", id="c1", index=0), call(SQL, id="c2", index=0))
BUSY = Fault(429, {"retry_after_ms": "1"}, '{"error": {"message": "slow down"}}')
SCORED = {
    "parts": [ASKS, reply(content=[{"type": "text", "text": ANSWER}])],
    "half a letter in a thought": [ASKS, reply(content=f"<think>\ud83d</think>{ANSWER}")],
    "a page of HTML once": [ASKS, Fault(200, body="<html>gateway</html>"), SAYS],
    "busy three times": [BUSY, BUSY, ASKS, BUSY, SAYS],
    "busy, who knows how long": [*[Fault(429)] * 9, ASKS, SAYS],
    "a thought that no limit bounds": [Fault(200, body=json.dumps(THINKS)), SAYS],
    "two calls, both the first": [TWICE, SAYS],
}
REFUSES = {
    "max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
    "temperature": "Unsupported value: 'temperature' does not support 0.7 with this model.",
}


@pytest.fixture
def endpoint(monkeypatch, no_waiting):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    server = LLMServer()
    with serving(server):
        yield server


def flags(endpoint: LLMServer) -> tuple[str, ...]:
    one = ("--n", "1", "--concurrency", "1", "--max-tokens", "99", "--temperature", "0.7")
    return ("--model", "m", "--base-url", endpoint.url, *one)


@pytest.mark.parametrize("replies", SCORED.values(), ids=SCORED)
def test_what_was_said_is_scored_in_every_form(data, endpoint, replies):
    endpoint.faults = [*replies]
    code, scores, (episode,) = run(data, *flags(endpoint))
    assert (code, scores["overall"]["unscored"], episode["score"]) == (0, {}, 1)
    assert episode["queries"][-1] == {"sql": SQL, "ok": True, "rows": 1, "error": None}
    assert endpoint.faults == []


def test_a_thought_alone_is_no_answer_and_is_kept(data, endpoint):
    endpoint.faults = [ASKS, reply(content=None, reasoning_content="Kept dry, I think.")]
    code, _, (episode,) = run(data, *flags(endpoint))
    assert (code, episode["score"]) == (0, 0)
    assert "Kept dry, I think." in json.dumps(episode)


@pytest.mark.parametrize(("parameter", "words"), REFUSES.items(), ids=REFUSES)
def test_an_endpoint_that_refuses_a_parameter_is_asked_without_it(
    data, endpoint, parameter, words, caplog
):
    endpoint.refuses = lambda body: words if body.get(parameter) is not None else None
    endpoint.answer = lambda body: ANSWER
    code, scores, (episode,) = run(data, *flags(endpoint))
    assert (code, scores["overall"]["unscored"], episode["answer"]) == (0, {}, ANSWER)
    told = f"asked without {parameter}" in caplog.text
    assert told is (parameter == "temperature")  # the limit keeps its value under another name
