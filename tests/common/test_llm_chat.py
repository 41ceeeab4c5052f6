"""Whole chat replies of the shared client, as a policy of an episode asks for them, against a real
HTTP server: tool calls, retries, and which error is whose doing.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from common.llm.endpoint import ChatModel, LLMEndpoint
from common.llm.retry import Patience
from episodes.episode import Message
from episodes.outcomes import EpisodeError, PolicyStop
from episodes.policy import ChatPolicy, Endpoint
from tests.common.llm_server import KEY, Fault, LLMServer, completion

pytestmark = pytest.mark.usefixtures("no_waiting")
QUESTION: list[Message] = [{"role": "user", "content": "？"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
NOWHERE = "http://127.0.0.1:9/v1"


def policy(url: str, name: str = "openai/m", **changes: Any) -> ChatPolicy:
    model = ChatModel(LLMEndpoint(name, url, KEY, 10.0), Patience(3, 30.0))
    return ChatPolicy(Endpoint("", name, chat_model=model, **changes), max_turns=3)


def asked(player: ChatPolicy) -> Message:
    return asyncio.run(player.reply(QUESTION))


def calling() -> Fault:
    reply = json.loads(completion(""))
    reply["choices"][0] |= {"finish_reason": "tool_calls"}
    reply["choices"][0]["message"] |= {"content": None, "tool_calls": [CALL]}
    return Fault(200, text=None, body=json.dumps(reply))


def test_a_reply_comes_whole_with_its_calls_and_tokens(llm: LLMServer) -> None:
    llm.faults = [calling()]
    player = policy(llm.url, max_tokens=7, extra={"top_k": -1})
    assert asked(player) == {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert (player.finish_reason, player.prompt_tokens, player.completion_tokens) == (
        "tool_calls",
        10,
        5,
    )
    [request] = llm.requests
    assert (request["model"], request["max_tokens"], request["top_k"]) == ("m", 7, -1)
    assert llm.keys == {f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "The input token count (200) exceeds the maximum number of tokens allowed (100)."),
        (400, "the request exceeds the available context size, try increasing it"),
        (400, "Input validation error: `inputs` must have less than 100 tokens. Given: 200"),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 100. Given: 200 `inputs` tokens"),
        (400, "prompt is too long: 200 tokens > 100 maximum"),
        (400, "Range of input length should be [1, 100]"),
        (400, "Invalid request: Your request exceeded model token limit: 100"),
        (400, "Input is too long for requested model."),
        (400, json.dumps({"error": {"code": "1261", "message": "Prompt 超长"}})),
        (500, "context size has been exceeded"),
        (200, '{"error": "the model is loaded with a context length of only 100 tokens"}'),
        (200, '{"error": {"message": "maximum context length is 100 tokens", "code": 400}}'),
    ],
)
def test_every_server_has_its_words_for_a_prompt_that_does_not_fit(
    llm: LLMServer, status: int, words: str
) -> None:
    llm.faults = [Fault(status, body=words)] * 3
    with pytest.raises(PolicyStop, match="context_overflow"):
        asked(policy(llm.url))


def said(finish_reason: str, content: str | None, **beside: Any) -> Fault:
    reply = json.loads(completion(""))
    reply["choices"][0]["finish_reason"] = finish_reason
    reply["choices"][0]["message"] |= {"content": content, **beside}
    return Fault(200, body=json.dumps(reply))


@pytest.mark.parametrize(
    ("word", "content"),
    [("content_filter", ""), ("content_filter", None), ("sensitive", "密"), ("SAFETY", "")],
)
def test_a_filter_of_the_provider_is_not_the_policys_silence(
    llm: LLMServer, word: str, content: str | None
) -> None:
    llm.faults = [said(word, content)]
    with pytest.raises(EpisodeError, match="content_filter") as caught:
        asked(policy(llm.url))
    assert caught.value.cause == "endpoint_error"
    assert len(llm.requests) == 1


def test_a_refusal_is_what_the_policy_says(llm: LLMServer) -> None:
    llm.faults = [said("stop", None, refusal="I cannot help.")]
    assert asked(policy(llm.url)) == {"role": "assistant", "content": "I cannot help."}


def test_what_came_beside_a_call_is_sent_back_with_it(llm: LLMServer) -> None:
    """DeepSeek, Kimi and Gemini refuse the next request otherwise, and others a content of null."""
    signature = {"google": {"thought_signature": "abc"}}
    first = json.loads(calling().body)
    said = first["choices"][0]["message"]
    said["reasoning_content"] = "I look."
    said["tool_calls"][0] = {**CALL, "index": 0, "extra_content": signature}
    llm.faults = [Fault(200, body=json.dumps(first))]
    llm.answer = lambda body: "密封"
    player = policy(llm.url)

    async def twice() -> None:
        message = await player.reply(QUESTION)
        assert message == {"role": "assistant", "content": None, "tool_calls": [CALL]}
        result: Message = {"role": "tool", "tool_call_id": "c1", "content": "[]"}
        await player.reply([*QUESTION, message, result])

    asyncio.run(twice())
    assert llm.requests[1]["messages"][1] == {
        "role": "assistant",
        "content": "",
        "reasoning_content": "I look.",
        "tool_calls": [{**CALL, "extra_content": signature}],
    }


def test_an_endpoint_that_cannot_forbid_tools_is_asked_without(llm: LLMServer) -> None:
    llm.refuses = lambda body: (
        "tool_choice 'none' is not supported" if "tool_choice" in body else None
    )
    llm.answer = lambda body: "密封"
    player = policy(llm.url)
    player.max_turns = 1
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    assert asyncio.run(player.reply(QUESTION, [tool]))["content"] == "密封"


@pytest.mark.parametrize("name", ["openai/m", "anthropic/m"])
def test_an_endpoint_that_is_not_there_is_named_so(name: str) -> None:
    """litellm carries the other, and has an error of its own for it."""
    with pytest.raises(EpisodeError, match="no connection") as caught:
        asked(policy(NOWHERE, name))
    assert caught.value.cause == "endpoint_unreachable"
