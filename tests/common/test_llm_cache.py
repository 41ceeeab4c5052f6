"""What the LLM client keeps and counts: the cache on disk, calls, tokens and cost, and its limits.

Keeps of docs/your-data.md, "The LLM": a reply is paid for once, and what it cost is not guessed.
"""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
from pydantic import BaseModel

from common.llm import LLMClient, LLMError, Usage
from common.settings import ROOT
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

    assert not ask(new()).cached
    second = new()
    answer = ask(second)
    assert answer.cached
    assert answer.value.kind == "drug"
    assert len(llm.requests) == 1
    assert second.usage == Usage(cached=1)
    assert (tmp_path / "new" / "c.sqlite").stat().st_mode & 0o077 == 0
    for options in (
        {"temperature": 0.5},
        {"max_tokens": 9},
        {"messages": [{"role": "user", "content": "?"}]},
    ):
        assert not ask(new(), **options).cached
    elsewhere = new(llm.url.replace("127.0.0.1", "localhost"))
    assert not ask(elsewhere).cached, "the same name at another address is another model"


def test_malformed_replies_are_not_kept(llm, tmp_path):
    llm.faults = [Fault(text="nothing")]
    llm.answer = lambda body: GOOD
    client = LLMClient("openai/m", base_url=llm.url, api_key=KEY, cache=tmp_path / "c", attempts=1)
    with pytest.raises(LLMError):
        ask(client)
    assert not ask(client).cached
    assert ask(client).cached


def test_a_kept_reply_that_no_longer_fits_is_asked_again(llm, client, tmp_path):
    client = LLMClient("openai/m", base_url=llm.url, api_key=KEY, cache=tmp_path / "c")
    ask(client)
    with sqlite3.connect(tmp_path / "c") as database:
        database.execute("UPDATE replies SET reply = '{}'")
    assert not ask(client).cached
    assert ask(client).cached


def test_one_question_of_many_tasks_is_one_call(llm, client, tmp_path):
    llm.delay = 0.2
    client = LLMClient("openai/m", base_url=llm.url, api_key=KEY, cache=tmp_path / "c")

    async def many():
        return await asyncio.gather(*(client.ask(ASKED, Verdict) for _ in range(6)))

    answers = asyncio.run(many())
    assert sum(answer.cached for answer in answers) == 5
    assert len(llm.requests) == 1


@pytest.mark.system
def test_processes_share_the_cache(tmp_path):
    program = (
        "import sys; from pathlib import Path; from common.llm import open_cache\n"
        "cache = open_cache(Path(sys.argv[1]))\n"
        "for n in range(200): cache.put(f'{sys.argv[2]}-{n}', 'x')\n"
    )
    file = tmp_path / "cache.sqlite"
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(file), str(n)], cwd=ROOT)
        for n in range(4)
    ]
    assert [process.wait() for process in running] == [0] * 4
    with sqlite3.connect(file) as database:
        assert database.execute("SELECT count(*) FROM replies").fetchone() == (800,)


def test_a_file_that_is_no_cache_is_named(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("not a database, and long enough to be read as one " * 20)
    with pytest.raises(LLMError, match=r"notes\.txt") as caught:
        LLMClient("openai/m", cache=file)
    assert caught.value.cause == "setup"


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
