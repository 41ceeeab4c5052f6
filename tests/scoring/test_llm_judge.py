"""The LLM judge at endpoints with and without schemas, and what it costs without a known price.

Keeps of docs/rewards.md, "Judges" and "What it costs": endpoints without schemas, and no cost where
no price is known.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from scoring.judge import Case, LLMJudge
from sql_agent.judge_words import WORDS
from tests.scoring.judge_servers import CASE, SCORES, TOTAL, completion


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


def test_an_unknown_price_is_not_zero(server):
    server.replies = [(200, completion(json.dumps(SCORES)))]
    judge = LLMJudge(WORDS, "openai/gpt-4o", f"{server.url}/v1", "k", 20.0)
    assert asyncio.run(judge.judge(CASE)).usage.cost_usd is None
