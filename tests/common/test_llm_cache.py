"""What the LLM client keeps and counts: the cache on disk, calls, tokens and cost, and its limits."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace

import pytest
from pydantic import BaseModel

from common.llm import LLMClient, LLMError, Usage
from tests.common.llm_server import KEY, Fault


class Verdict(BaseModel):
    kind: str
    certain: bool


GOOD = '{"kind": "drug", "certain": true}'
ASKED = [{"role": "user", "content": "阿莫西林怎么吃？"}]


@pytest.fixture
def client(llm, no_waiting):
    llm.answer = lambda body: GOOD
    return LLMClient("openai/stand-in", base_url=llm.url, api_key=KEY, timeout=20)


def ask(client, messages=ASKED, **options):
    return asyncio.run(client.ask(messages, Verdict, **options))


def test_the_cache_answers_a_second_client(llm, client, tmp_path):
    def new(url=llm.url):
        return LLMClient(
            "openai/stand-in", base_url=url, api_key=KEY, cache=tmp_path / "new" / "c.sqlite"
        )

    ask(new())
    second = new()
    assert ask(second).kind == "drug"
    assert len(llm.requests) == 1
    assert second.usage == Usage(cached=1)
    assert (tmp_path / "new" / "c.sqlite").stat().st_mode & 0o077 == 0
    other = [{"role": "user", "content": "?"}]
    for options in ({"temperature": 0.5}, {"max_tokens": 9}, {"messages": other}):
        ask(new(), **options)
    elsewhere = new(llm.url.replace("127.0.0.1", "localhost"))
    ask(elsewhere)
    assert len(llm.requests) == 5, "the same name at another address is another model"


def test_malformed_replies_are_not_kept(llm, tmp_path):
    llm.faults = [Fault(text="nothing")]
    llm.answer = lambda body: GOOD
    client = LLMClient("openai/m", base_url=llm.url, api_key=KEY, cache=tmp_path / "c", attempts=1)
    with pytest.raises(LLMError):
        ask(client)
    ask(client)
    assert client.usage.cached == 0
    ask(client)
    assert client.usage.cached == 1


def test_one_question_of_many_tasks_is_one_call(llm, client, tmp_path):
    llm.delay = 0.2
    client = LLMClient("openai/m", base_url=llm.url, api_key=KEY, cache=tmp_path / "c")

    async def many():
        return await asyncio.gather(*(client.ask(ASKED, Verdict) for _ in range(6)))

    asyncio.run(many())
    assert (client.usage.cached, len(llm.requests)) == (5, 1)


def test_tokens_and_cost_are_counted(llm, client):
    llm.faults = [Fault(text="malformed, and paid for")]
    ask(client)
    assert client.usage == Usage(2, 0, 20, 10, None), "no price is known, so no cost"
    priced = LLMClient("openai/stand-in", base_url=llm.url, api_key=KEY)
    priced._endpoint.provider = replace(priced.provider, prices=(0.15e-6, 0.6e-6))
    ask(priced)
    assert priced.usage.cost_usd == pytest.approx(10 * 0.15e-6 + 5 * 0.6e-6)
    assert Usage().cost_usd == 0.0


def test_concurrency_is_limited(llm):
    together = threading.Barrier(3)  # each reply waits for two others that are asked for

    def answer(body):
        together.wait(60)
        return GOOD

    llm.answer = answer
    client = LLMClient("openai/m", base_url=llm.url, api_key=KEY, concurrency=3)

    async def many():
        await asyncio.gather(
            *(client.ask([{"role": "user", "content": str(n)}], Verdict) for n in range(12))
        )

    asyncio.run(many())
    asyncio.run(many())  # another loop, the same client
    assert llm.busiest == 3


def test_requests_a_minute_are_limited_and_do_not_eat_the_budget(llm):
    llm.answer = lambda body: GOOD
    client = LLMClient(
        "openai/m", base_url=llm.url, api_key=KEY, requests_per_minute=150, timeout=1.5
    )
    start = time.monotonic()

    async def many():
        await asyncio.gather(
            *(client.ask([{"role": "user", "content": str(n)}], Verdict) for n in range(6))
        )

    asyncio.run(many())
    earliest = [start + number * 60 / 150 for number in range(6)]
    assert all(moment >= least for moment, least in zip(llm.times, earliest, strict=True))
