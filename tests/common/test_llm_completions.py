"""Completions over one or many addresses, against real HTTP servers: balance, failures, who is left
alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from common.llm.completions import ATTEMPTS, Completions
from common.llm.errors import LLMError
from tests.common.llm_server import KEY, Fault, LLMServer
from tests.serving import serving

pytestmark = pytest.mark.usefixtures("no_waiting")
NOWHERE = "http://127.0.0.1:9/v1"
BODY = {"prompt": "Exam results:\n", "max_tokens": 5}


@pytest.fixture
def other() -> Iterator[LLMServer]:
    server = LLMServer()
    server.answer = lambda body: "b"
    with serving(server):
        yield server


@pytest.fixture
def one(llm: LLMServer) -> LLMServer:
    llm.answer = lambda body: "a"
    return llm


def complete(client: Completions, times: int = 1) -> list[str]:
    async def all_at_once() -> list[str]:
        return list(await asyncio.gather(*(client.complete(BODY) for _ in range(times))))

    return asyncio.run(all_at_once())


def test_it_is_openais_protocol_with_the_key(one: LLMServer) -> None:
    assert complete(Completions("EHRGenerator", [one.url + "/"], KEY)) == ["a"]
    assert one.requests == [{"model": "EHRGenerator", **BODY}]
    assert one.keys == {f"Bearer {KEY}"}


def test_two_addresses_share_the_work(one: LLMServer, other: LLMServer) -> None:
    one.delay = other.delay = 0.2
    assert sorted(complete(Completions("m", [one.url, other.url]), 8)) == ["a"] * 4 + ["b"] * 4


def test_a_dead_address_is_left_alone_and_costs_nothing(other: LLMServer) -> None:
    client = Completions("m", [NOWHERE, other.url])
    assert complete(client, 3) == ["b"] * 3
    dead, alive = client.addresses
    assert dead.rests_until > time.monotonic() > alive.rests_until
    assert len(other.requests) == 3


def test_who_asks_for_a_pause_has_it_while_the_other_answers(
    one: LLMServer, other: LLMServer
) -> None:
    one.faults = [Fault(429, {"Retry-After": "3000"})] * 9
    client = Completions("m", [one.url, other.url], timeout=5)
    assert complete(client, 4) == ["b"] * 4
    assert [complete(client) for _ in range(2)] == [["b"], ["b"]]
    assert client.addresses[0].rests_until > time.monotonic() + 2000


@pytest.mark.parametrize(
    ("fault", "cause", "requests"),
    [
        (Fault(503), "status", ATTEMPTS),
        (Fault(200, body='{"choices": [{"text": 5}]}'), "malformed", ATTEMPTS),
        (Fault(200, text="  "), "malformed", ATTEMPTS),
        (Fault(401), "refused", 1),
    ],
)
def test_what_stays_wrong_is_an_error_without_the_key(
    fault: Fault, cause: str, requests: int, one: LLMServer
) -> None:
    one.faults = [fault] * 9
    with pytest.raises(LLMError) as caught:
        complete(Completions("m", [one.url], KEY, timeout=5))
    assert (caught.value.cause, len(one.requests)) == (cause, requests)
    assert KEY not in str(caught.value)
