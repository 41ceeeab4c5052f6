"""Completions of a model, against a real HTTP server."""

from __future__ import annotations

import asyncio

import pytest

from common.llm.completions import ATTEMPTS, Completions
from common.llm.errors import LLMError
from tests.common.llm_server import KEY, Fault, LLMServer

pytestmark = pytest.mark.usefixtures("no_waiting")
NOWHERE = "http://127.0.0.1:9/v1"
BODY = {"prompt": "Exam results:\n", "max_tokens": 5}


@pytest.fixture
def one(llm: LLMServer) -> LLMServer:
    llm.answer = lambda body: "a"
    return llm


def complete(client: Completions) -> str:
    return asyncio.run(client.complete(BODY))


def test_it_is_openais_protocol_with_the_key(one: LLMServer) -> None:
    assert complete(Completions("EHRGenerator", one.url + "/", KEY)) == "a"
    assert one.requests == [{"model": "EHRGenerator", **BODY}]
    assert one.keys == {f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("fault", "cause", "requests"),
    [
        (Fault(503), "status", ATTEMPTS),
        (Fault(200, body='{"choices": [{"text": 5}]}'), "malformed", ATTEMPTS),
        (Fault(401), "refused", 1),
    ],
)
def test_what_stays_wrong_is_an_error_without_the_key(
    fault: Fault, cause: str, requests: int, one: LLMServer
) -> None:
    one.faults = [fault] * 9
    with pytest.raises(LLMError) as caught:
        complete(Completions("m", one.url, KEY, timeout=5))
    assert (caught.value.cause, len(one.requests)) == (cause, requests)
    assert KEY not in str(caught.value)
