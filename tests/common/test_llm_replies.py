"""Every form of reply is read; what a server could not end is not the model's silence."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from common.llm.client import LLMClient
from common.llm.endpoint import LLMEndpoint
from common.llm.retry import Patience
from episodes.outcomes import EpisodeError
from episodes.policy import ChatPolicy, Endpoint
from tests.common.llm_server import KEY, Fault, LLMServer, replying
from tests.corpora import cases_of

pytestmark = pytest.mark.usefixtures("no_waiting")
QUESTION = [{"role": "user", "content": "？"}]
GOOD = '{"answer": "密封"}'
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}


class Answer(BaseModel):
    answer: str


def events(*deltas: dict[str, Any], finish: str | None = "stop") -> str:
    """A stream of events, with an end unless `finish` is None."""
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    if finish:
        chunks[-1]["choices"][0]["finish_reason"] = finish
    lines = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"][: None if finish else -1])


def played(llm: LLMServer, tools: bool = False, **changes: Any) -> tuple[Any, ChatPolicy]:
    model = LLMEndpoint("openai/m", llm.url, KEY, 10.0, Patience(3, 30.0))
    player = ChatPolicy(Endpoint("", "openai/m", chat_model=model, **changes), max_turns=3)
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    return asyncio.run(player.reply(QUESTION, [tool] if tools else [])), player


def judged(llm: LLMServer) -> str:
    client = LLMClient("openai/m", base_url=llm.url, api_key=KEY, timeout=20)
    return asyncio.run(client.ask(QUESTION, Answer)).answer


@pytest.mark.parametrize(("why", "form"), cases_of(__file__, "reply_forms"))
def test_what_a_model_said_is_read_in_every_form(llm, why, form):
    body = form if isinstance(form, str) else json.dumps(form)
    llm.faults = [Fault(200, body=body), Fault(200, body=body)]
    message, player = played(llm)
    assert message == {"role": "assistant", "content": GOOD}
    assert isinstance(player.completion_tokens, int)
    assert judged(llm) == "密封"
    assert len(llm.requests) == 2


def test_utf8_is_read_whatever_charset_is_declared(llm):
    headers = {"Content-Type": "application/json; charset=ISO-8859-1"}
    llm.faults = [replace(replying(content=GOOD), headers=headers)]
    assert judged(llm) == "密封"


def test_an_answer_that_a_server_took_for_a_thought_is_read(llm):
    """vLLM's parsers of thoughts do so with replies in JSON."""
    for name in ("reasoning_content", "reasoning"):
        llm.faults.append(replying(content=None, **{name: GOOD}))
        assert judged(llm) == "密封"
    assert len(llm.requests) == 2


@pytest.mark.parametrize(("second", "said"), [(r"\ude00封", "密😀封"), ("封", "密\ufffd封")])
def test_a_character_that_a_stream_cuts_in_two_is_joined(llm, second, said):
    """A half that stays alone could not be written to a file."""
    body = events({"content": "FIRST"}, {"content": "SECOND"})
    llm.faults = [Fault(200, body=body.replace("FIRST", r"密\ud83d").replace("SECOND", second))]
    assert played(llm)[0]["content"] == said


@pytest.mark.parametrize(("why", "form"), cases_of(__file__, "unended_replies"))
def test_what_a_server_could_not_end_is_asked_again(llm, why, form):
    body = form if isinstance(form, str) else json.dumps(form)
    llm.faults = [Fault(200, body=body)]
    llm.answer = lambda asked: GOOD
    assert played(llm)[0]["content"] == GOOD
    assert len(llm.requests) == 2
    llm.faults = [Fault(200, body=body)] * 3
    with pytest.raises(EpisodeError) as failed:
        played(llm)
    assert failed.value.cause == "endpoint_error"


@pytest.mark.parametrize("before", ["", "event: error\ndata: "])
def test_an_error_with_the_status_of_a_refusal_is_not_asked_again(llm, before):
    body = before + '{"error": {"message": "no credentials", "code": 401}}'
    llm.faults = [Fault(200, body=body)]
    with pytest.raises(EpisodeError, match="401"):
        played(llm)
    assert len(llm.requests) == 1


@pytest.mark.parametrize(
    "word", ["max_tokens", "MAX_TOKENS", "max_output_tokens", "model_context_window_exceeded"]
)
def test_a_reply_that_is_cut_is_known_by_every_word_for_it(llm, word):
    llm.faults = [replying(word, content=GOOD)]
    assert played(llm)[1].finish_reason == "length"


@pytest.mark.parametrize("refusal", cases_of(__file__, "stream_only"))
def test_an_endpoint_that_only_streams_is_asked_for_a_stream(llm, refusal):
    llm.refuses = lambda body: None if body.get("stream") else refusal
    llm.answer = lambda asked: GOOD
    assert played(llm)[0]["content"] == GOOD
    assert [body.get("stream") for body in llm.requests] == [None, True]


@pytest.mark.parametrize(
    "message",
    [
        {"function_call": CALL["function"]},
        {"tool_calls": [{"id": "c1", "name": "look", "arguments": {"a": 1}}]},
        {"tool_calls": [{"id": 1, "function": {"name": "look", "arguments": json.dumps(GOOD)}}]},
    ],
    ids=["as once", "flat", "written twice"],
)
def test_a_call_is_read_in_every_form(llm, message):
    llm.faults = [replying(content=None, **message)]
    [call] = played(llm, tools=True)[0]["tool_calls"]
    assert isinstance(call["id"], str)
    assert call["function"]["name"] == "look"
    assert isinstance(json.loads(call["function"]["arguments"]), dict)


@pytest.mark.parametrize(
    "known_by",
    [{"index": 0}, {"id": "c1"}, {"index": None, "id": None}, {"index": None, "id": "c1"}, {}],
    ids=["index", "id", "null", "id beside null", "nothing"],
)
def test_a_call_in_pieces_is_put_together(llm, known_by):
    first = {**CALL, **known_by, "id": "c1", "function": {"name": "look", "arguments": ""}}
    later = [{**known_by, "function": {"arguments": piece}} for piece in ('{"a":', " 1}")]
    pieces = [{"tool_calls": [one]} for one in (first, *later)]
    llm.faults = [Fault(200, body=events(*pieces, finish="tool_calls"))]
    message, player = played(llm, tools=True)
    assert message == {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert player.finish_reason == "tool_calls"


@pytest.mark.parametrize(("why", "pieces"), cases_of(__file__, "parallel_calls"))
def test_parallel_calls_in_pieces_stay_apart(llm, why, pieces):
    deltas = [{"tool_calls": [piece]} for piece in pieces]
    llm.faults = [Fault(200, body=events(*deltas, finish="tool_calls"))]
    calls = played(llm, tools=True)[0]["tool_calls"]
    assert [call["function"] for call in calls] == [CALL["function"]] * 2
    assert len({call["id"] for call in calls}) == 2


@pytest.mark.parametrize(("why", "pieces"), cases_of(__file__, "one_call"))
def test_pieces_that_repeat_a_name_or_bring_it_late_are_one_call(llm, why, pieces):
    deltas = [{"tool_calls": [piece]} for piece in pieces]
    whole = 'data: {"choices": [{"message": {"content": ""}}]}\n\ndata: [DONE]'
    stream = events(*deltas, finish="tool_calls").replace("data: [DONE]", whole)
    llm.faults = [Fault(200, body=stream)]
    [call] = played(llm, tools=True)[0]["tool_calls"]
    assert call["function"] == CALL["function"]
