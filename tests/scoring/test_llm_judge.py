"""The LLM judge at endpoints with and without schemas, with other protocols, and its prices."""

from __future__ import annotations

import asyncio
import json

import pytest

from scoring.judge import Case, LLMJudge
from sql_agent.judge_words import WORDS
from tests.scoring.judge_servers import CASE, SCORES, TOTAL, ask_llm, completion


def test_an_endpoint_without_schemas_is_asked_with_less(server):
    refusal = (400, '{"error": {"message": "response_format is not supported"}}')
    server.replies = [refusal, refusal, (200, completion(json.dumps(SCORES)))]
    judge = LLMJudge(WORDS, "openai/judge", f"{server.url}/v1", "k", 20.0)

    async def twice():
        return await judge.judge(CASE), await judge.judge(Case("另一问？", "另一答"))

    first, second = asyncio.run(twice())
    assert first.score == second.score == pytest.approx(TOTAL)
    formats = [body.get("response_format", {}).get("type") for _, _, body in server.requests]
    assert formats == ["json_schema", "json_object", None, None]
    assert '"accuracy"' in server.requests[-1][2]["messages"][-1]["content"]


def test_a_provider_with_its_own_protocol_goes_through_litellm(server):
    message = {"id": "x", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    text = {"content": [{"type": "text", "text": json.dumps(SCORES)}], "usage": {"input_tokens": 1, "output_tokens": 1}}
    server.replies = [(200, json.dumps(message | text))]
    judge = LLMJudge(WORDS, "anthropic/some-model", server.url, "k", 20.0)
    assert not judge.client.provider.speaks_openai
    assert asyncio.run(judge.judge(CASE)).score == pytest.approx(TOTAL)
    assert server.requests[0][0] == "/v1/messages"


def test_prices_are_litellm_s_and_an_unknown_price_is_not_zero(server):
    server.replies = [(200, completion(json.dumps(SCORES)))]
    known = asyncio.run(LLMJudge(WORDS, "openai/gpt-4o", f"{server.url}/v1", "k", 20.0).judge(CASE))
    assert known.usage.cost_usd == pytest.approx(2.5e-6 + 1e-5)
    assert ask_llm(server).usage.cost_usd is None
