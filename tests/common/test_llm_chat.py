"""The shared client over HTTP: tool calls, retries, other samplings, and whose an error is."""

import asyncio
import json
from typing import Any

import pytest

from common.llm.endpoint import LLMEndpoint
from common.llm.errors import LLMError
from common.llm.retry import Patience
from episodes.episode import Message
from episodes.outcomes import EpisodeError, PolicyStop
from episodes.policy import ChatPolicy, Endpoint, endpoint_elsewhere
from scoring.judge import LLMJudge
from sql_agent.judge_words import WORDS
from tests.common.llm_server import KEY, Fault, replying
from tests.corpora import cases_of
from tests.scoring.judge_servers import CASE, SCORES

pytestmark = pytest.mark.usefixtures("no_waiting")
QUESTION: list[Message] = [{"role": "user", "content": "？"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
NOWHERE = "http://127.0.0.1:9/v1"


def policy(url: str, name: str = "openai/m", **changes: Any) -> ChatPolicy:
    model = LLMEndpoint(name, url, KEY, 10.0, Patience(3, 30.0))
    return ChatPolicy(Endpoint("", name, chat_model=model, **changes), max_turns=3)


def asked(player: ChatPolicy) -> Message:
    return asyncio.run(player.reply(QUESTION))


@pytest.mark.parametrize(
    ("address", "shown"),
    [("HOST/v1/models", "HOST/v1/models/chat/completions"), ("localhost:1/v1", "localhost:1")],
    ids=["a wrong path", "no http"],
)
def test_a_wrong_address_is_named_and_asked_once(llm, address, shown):
    host = llm.url.removesuffix("/v1")
    model = LLMEndpoint("openai/m", address.replace("HOST", host), KEY, 10.0, Patience(3, 30.0))
    with pytest.raises(LLMError) as failed:
        asyncio.run(model.reply({"messages": []}))
    assert shown.replace("HOST", host) in str(failed.value)
    assert failed.value.cause == "refused"


def test_where_a_redirect_led_is_named(llm):
    llm.faults = [Fault(301, {"Location": "/v1/moved"})]
    with pytest.raises(EpisodeError, match=r"GET .*/v1/moved"):
        asked(policy(llm.url))


@pytest.mark.parametrize(("status", "words"), cases_of(__file__, "context_words"))
def test_every_server_has_its_words_for_a_prompt_that_does_not_fit(llm, status, words):
    llm.faults = [Fault(status, body=words)] * 3
    with pytest.raises(PolicyStop, match="context_overflow"):
        asked(policy(llm.url))


@pytest.mark.parametrize(("status", "words"), cases_of(__file__, "account_limits"))
def test_a_limit_of_an_account_is_no_prompt_that_does_not_fit(llm, status, words):
    llm.faults = [Fault(status, body=words)] * 3
    with pytest.raises(EpisodeError, match=words):
        asked(policy(llm.url))


@pytest.mark.parametrize(("word", "content"), cases_of(__file__, "filtered_replies"))
def test_a_filter_of_the_provider_is_not_the_policys_silence(llm, word, content):
    llm.faults = [replying(word, content=content)]
    with pytest.raises(EpisodeError, match="content_filter") as caught:
        asked(policy(llm.url))
    assert caught.value.cause == "endpoint_error"
    assert len(llm.requests) == 1


def test_a_refusal_is_what_the_policy_says(llm):
    llm.faults = [replying(content=None, refusal="I cannot help.")]
    assert asked(policy(llm.url)) == {"role": "assistant", "content": "I cannot help."}


def test_what_came_beside_a_call_is_sent_back_with_it(llm):
    """DeepSeek, Kimi and Gemini refuse the next request otherwise, others a content of null, and
    OpenAI a name that its own models invent."""
    signature = {"google": {"thought_signature": "abc"}}
    first = {**CALL, "function": {"name": "use.parallel", "arguments": "{}"}}
    call = {**first, "index": 0, "extra_content": signature}
    thought = {"content": None, "reasoning_content": "I look."}
    llm.faults = [replying("tool_calls", **thought, tool_calls=[call])]
    llm.answer = lambda body: "密封"
    player = policy(llm.url)

    async def twice() -> None:
        message = await player.reply(QUESTION)
        assert message == {"role": "assistant", "content": None, "tool_calls": [first]}
        result: Message = {"role": "tool", "tool_call_id": "c1", "content": "[]"}
        await player.reply([*QUESTION, message, result])

    asyncio.run(twice())
    known = {**first, "function": {"name": "use_parallel", "arguments": "{}"}}
    beside = {"reasoning_content": "I look.", "tool_calls": [{**known, "extra_content": signature}]}
    assert llm.requests[1]["messages"][1] == {"role": "assistant", "content": "", **beside}


def test_an_endpoint_that_cannot_forbid_tools_is_asked_without(llm):
    words = "tool_choice 'none' is not supported"
    llm.refuses = lambda body: words if "tool_choice" in body else None
    llm.answer = lambda body: "密封"
    player = policy(llm.url)
    player.max_turns = 1
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    assert asyncio.run(player.reply(QUESTION, [tool]))["content"] == "密封"


@pytest.mark.parametrize("name", ["openai/m", "anthropic/m"])
def test_an_endpoint_that_is_not_there_is_named_so(name):
    """litellm carries the other, and has an error of its own for it."""
    with pytest.raises(EpisodeError, match="no connection") as caught:
        asked(policy(NOWHERE, name))
    assert caught.value.cause == "endpoint_unreachable"


def as_reasoning_models_of_openai(body: dict[str, Any]) -> str | None:
    wrong = [name for name in ("max_tokens", "top_p") if name in body]
    if body.get("temperature", 1) != 1:
        wrong.append("temperature")
    return f"Unsupported parameter: '{wrong[0]}' is not supported." if wrong else None


def as_claude(body: dict[str, Any]) -> str | None:
    if "temperature" in body and "top_p" in body:
        return "`temperature` and `top_p` cannot both be specified for this model."
    return None


def judged(model: str, url: str) -> float | None:
    return asyncio.run(LLMJudge(WORDS, model, url, "key", 20.0).judge(CASE)).score


def played(model: str, url: str | None = None, key: str | None = None) -> str:
    endpoint = endpoint_elsewhere(model, url, key, temperature=0.7, max_tokens=99)
    policy = ChatPolicy(endpoint, 1)
    return asyncio.run(policy.reply([{"role": "user", "content": "？"}]))["content"]


@pytest.mark.parametrize("model", ["openai/gpt-5-mini", "openai/ours"])
def test_a_reasoning_model_judges_and_plays(llm, model):
    """Also by a name of the user's own. It is asked so ever after."""
    llm.refuses = as_reasoning_models_of_openai
    llm.answer = lambda body: json.dumps(SCORES)
    judge = LLMJudge(WORDS, model, llm.url, "key", 20.0)
    assert asyncio.run(judge.judge(CASE)).score is not None
    assert llm.requests[-1]["max_completion_tokens"] == 2048
    refused = len(llm.requests)
    assert asyncio.run(judge.client.ask([{"role": "user", "content": "?"}], WORDS.reply))
    assert len(llm.requests) == refused + 1
    assert judge.breaker.allows()
    assert played(model, llm.url) == json.dumps(SCORES)
    player = llm.requests[-1]
    assert (player["max_completion_tokens"], "temperature" in player) == (99, False)


@pytest.mark.parametrize(("words", "given_up"), cases_of(__file__, "refused_values"))
def test_what_a_refusal_names_is_left_out_whatever_its_words(llm, words, given_up):
    llm.refuses = lambda body: words if given_up in body else None
    llm.answer = lambda body: "密封"
    assert played("openai/ours", llm.url) == "密封"
    [first, second] = llm.requests
    assert first.keys() - second.keys() == {given_up}


def test_what_a_refusal_named_in_vain_is_sent_again(llm):
    """It was about something else: one try more, and no other sampling from then on."""
    where = endpoint_elsewhere("openai/ours", llm.url, temperature=0.7)
    llm.refuses = lambda body: "a question about body temperature is not allowed"
    for _ in range(2):
        with pytest.raises(EpisodeError, match="not allowed"):
            asyncio.run(ChatPolicy(where, 1).reply([{"role": "user", "content": "？"}]))
    assert ["temperature" in request for request in llm.requests] == [True, False] * 2


def test_a_limit_that_is_too_large_is_not_given_up(llm):
    llm.refuses = lambda body: "max_tokens is too large: at most 8 are left"
    with pytest.raises(EpisodeError, match="too large"):
        played("openai/ours", llm.url)
    assert len(llm.requests) == 1


def test_claude_is_asked_again_without_top_p_beside_the_temperature(llm, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setenv("ANTHROPIC_API_BASE", llm.url.removesuffix("/v1"))
    llm.refuses = as_claude
    llm.answer = lambda body: "密封"
    assert played("anthropic/claude-sonnet-4-5-20250929") == "密封"
    assert [request.get("top_p") for request in llm.requests] == [1.0, None]
    llm.answer = lambda body: json.dumps(SCORES)
    assert judged("anthropic/claude-sonnet-4-5-20250929", llm.url.removesuffix("/v1")) is not None
