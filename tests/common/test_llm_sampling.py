"""Models that take the sampling of a request in another form than most do, in every role: they are
asked as they want to be, whether litellm knows their name or only the endpoint says so.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from episodes.outcomes import EpisodeError
from episodes.policy import ChatPolicy, endpoint_elsewhere
from scoring.judge import LLMJudge
from sql_agent.judge_words import WORDS
from tests.common.llm_server import LLMServer
from tests.scoring.judge_servers import CASE, SCORES

pytestmark = pytest.mark.usefixtures("no_waiting")
REASONING = ("gpt-5-mini", "o1", "o3", "o4-mini")


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


@pytest.mark.parametrize("name", REASONING)
def test_a_reasoning_model_judges(llm: LLMServer, name: str) -> None:
    llm.refuses = as_reasoning_models_of_openai
    llm.answer = lambda body: json.dumps(SCORES)
    assert judged(f"openai/{name}", llm.url) is not None
    [request] = llm.requests
    assert request["max_completion_tokens"] == 2048


@pytest.mark.parametrize("name", REASONING)
def test_a_reasoning_model_plays(llm: LLMServer, name: str) -> None:
    llm.refuses = as_reasoning_models_of_openai
    llm.answer = lambda body: "密封"
    assert played(f"openai/{name}", llm.url) == "密封"
    [request] = llm.requests
    assert (request["max_completion_tokens"], "temperature" in request) == (99, False)


def test_an_endpoint_whose_models_litellm_does_not_know_says_what_it_refuses(
    llm: LLMServer,
) -> None:
    """A deployment, or a name of the user's own. It is asked so ever after."""
    llm.refuses = as_reasoning_models_of_openai
    llm.answer = lambda body: json.dumps(SCORES)
    judge = LLMJudge(WORDS, "openai/ours", llm.url, "key", 20.0)
    assert asyncio.run(judge.judge(CASE)).score is not None
    refused = len(llm.requests)
    assert asyncio.run(judge.client.ask([{"role": "user", "content": "?"}], WORDS.reply))
    assert len(llm.requests) == refused + 1
    assert judge.breaker.allows()


@pytest.mark.parametrize(
    ("words", "given_up"),
    [
        ("invalid temperature: only 1 is allowed for this model", "temperature"),
        ("top_p must be 0.95", "top_p"),
    ],
)
def test_what_a_refusal_names_is_left_out_whatever_its_words(
    llm: LLMServer, words: str, given_up: str
) -> None:
    llm.refuses = lambda body: words if given_up in body else None
    llm.answer = lambda body: "密封"
    assert played("openai/ours", llm.url) == "密封"
    [first, second] = llm.requests
    assert first.keys() - second.keys() == {given_up}


def test_what_a_refusal_named_in_vain_is_sent_again(llm: LLMServer) -> None:
    """It was about something else: one try more, and no other sampling from then on."""
    where = endpoint_elsewhere("openai/ours", llm.url, temperature=0.7)
    llm.refuses = lambda body: "a question about body temperature is not allowed"
    for _ in range(2):
        with pytest.raises(EpisodeError, match="not allowed"):
            asyncio.run(ChatPolicy(where, 1).reply([{"role": "user", "content": "？"}]))
    assert ["temperature" in request for request in llm.requests] == [True, False] * 2


def test_a_limit_that_is_too_large_is_not_given_up(llm: LLMServer) -> None:
    llm.refuses = lambda body: "max_tokens is too large: at most 8 are left"
    with pytest.raises(EpisodeError, match="too large"):
        played("openai/ours", llm.url)
    assert len(llm.requests) == 1


def test_claude_is_not_sent_top_p_beside_the_temperature(
    llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setenv("ANTHROPIC_API_BASE", llm.url.removesuffix("/v1"))
    llm.refuses = as_claude
    llm.answer = lambda body: "密封"
    assert played("anthropic/claude-sonnet-4-5-20250929") == "密封"
    assert [request["temperature"] for request in llm.requests] == [0.7]
    llm.answer = lambda body: json.dumps(SCORES)
    assert judged("anthropic/claude-sonnet-4-5-20250929", llm.url.removesuffix("/v1")) is not None
