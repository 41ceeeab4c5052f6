"""A model behind an endpoint as a policy, against a real HTTP server with scripted replies."""

import asyncio
import json
from typing import Any

import pytest

from episodes.episode import Message
from episodes.outcomes import EpisodeError, PolicyStop
from episodes.policy import ChatPolicy, Endpoint
from tests.corpora import cases_of
from tests.episodes.scripted import calls, says

LOOK = {"name": "look", "description": "d", "parameters": {"type": "object"}}
TOOLS = [{"type": "function", "function": LOOK}]
QUESTION = [{"role": "user", "content": "怎么保存？"}]


def policy(llm: Any, max_turns: int = 3, **endpoint: Any) -> ChatPolicy:
    return ChatPolicy(Endpoint(llm.base_url, "tiny", **endpoint), max_turns)


def replies(chat: ChatPolicy, count: int = 1, tools: Any = TOOLS) -> list[Message]:
    """Ask so often, each time with the replies so far."""

    async def run() -> list[Message]:
        messages: list[Message] = []
        for _ in range(count):
            messages.append(await chat.reply([*QUESTION, *messages], tools))
        return messages

    return asyncio.run(run())


def test_what_is_sent_is_the_messages_the_tools_and_the_sampling(llm):
    llm.script(says("好"))
    chat = policy(llm, temperature=0.5, top_p=None, max_tokens=77, extra={"top_k": -1})
    assert replies(chat) == [{"role": "assistant", "content": "好"}]
    sampling = {"temperature": 0.5, "max_tokens": 77, "top_k": -1}
    assert llm.requests == [{"model": "tiny", "messages": QUESTION, "tools": TOOLS, **sampling}]
    assert chat.turns == 1
    assert chat.prompt_tokens == 1
    assert chat.completion_tokens == 1
    assert chat.finish_reason == "stop"


@pytest.mark.parametrize(
    ("most", "finish"), [(1, "length"), (2, "tool_calls"), (None, "tool_calls")]
)
def test_a_call_that_goes_on_to_the_token_limit_is_a_cut_reply(llm, most, finish):
    """vLLM says "tool_calls" of every reply with a call, of a cut one as well."""
    llm.script(calls("look", word="a"))
    chat = policy(llm, max_tokens=most)
    replies(chat)
    assert (chat.completion_tokens, chat.finish_reason) == (1, finish)


@pytest.mark.parametrize("max_turns", [1, 3])
def test_only_the_last_allowed_call_forbids_tools_and_none_follows(llm, max_turns):
    llm.script(says("好"))
    chat = policy(llm, max_turns)
    replies(chat, max_turns)
    *before, last = [request.get("tool_choice", "auto") for request in llm.requests]
    assert (before, last) == (["auto"] * (max_turns - 1), "none")
    assert all(request["tools"] == TOOLS for request in llm.requests)
    with pytest.raises(PolicyStop, match="max_turns"):
        replies(chat)
    assert len(llm.requests) == chat.turns == max_turns


@pytest.mark.parametrize(("status", "error"), [(500, "x"), (401, "x"), (400, "bad field")])
def test_an_endpoint_that_fails_raises(llm, status, error):
    llm.status, llm.error = status, error
    with pytest.raises(EpisodeError, match=str(status)) as caught:
        replies(policy(llm))
    assert caught.value.cause == "endpoint_error"


def odd(**call: Any) -> dict[str, Any]:
    """A reply that calls a tool, whose call is as an endpoint wrote it."""
    told = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}} | call
    return {"message": {"role": "assistant", "content": None, "tool_calls": [told]}}


@pytest.fixture
def raw(monkeypatch, llm):
    """The scripted server; calls go out as the script has them, without ids of the server's."""
    monkeypatch.setattr("tests.episodes.scripted.numbered", lambda message, number: message)
    return llm


@pytest.mark.parametrize("call", cases_of(__file__, "incomplete_calls"))
def test_what_an_endpoint_leaves_out_of_a_call_is_read_as_it_is_meant(raw, call):
    raw.script(odd(**call))
    [message] = replies(policy(raw))
    [found] = message["tool_calls"]
    assert found["id"]
    assert found["type"] == "function"
    assert isinstance(found["function"]["arguments"], str)


def test_what_a_model_of_ours_writes_is_kept_as_it_is_trained_on(raw):
    """A call in other words than the reply's would begin another sequence of tokens."""
    written = json.dumps(json.dumps({"word": "a"}))
    raw.script(odd(function={"name": "look", "arguments": written}))
    [message] = replies(policy(raw))
    assert message["tool_calls"][0]["function"]["arguments"] == written


def test_calls_of_one_id_are_told_apart(raw):
    raw.script(odd(), odd())
    messages = replies(policy(raw), 2)
    assert len({message["tool_calls"][0]["id"] for message in messages}) == 2


@pytest.mark.parametrize(
    "reply",
    [{"message": None}, odd(function=None), odd(function={"name": None, "arguments": "{}"})],
)
def test_what_is_no_reply_leaves_the_episode_unscored(raw, reply):
    """One such reply ended the whole evaluation."""
    raw.script(reply)
    with pytest.raises(EpisodeError) as failed:
        replies(policy(raw))
    assert failed.value.cause == "endpoint_error"
