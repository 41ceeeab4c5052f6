"""The LLM client against a real HTTP server: replies, failures, the cache and the counters."""

import asyncio
import json
import threading
import time
from email.utils import formatdate
from typing import Literal

import pytest
from pydantic import BaseModel

from common.llm.client import LLMClient, Usage
from common.llm.endpoint import load_litellm
from common.llm.errors import LLMError, wait_in
from tests.common.llm_server import KEY, Fault, replying
from tests.corpora import cases_of
from tests.messages import missing


class Verdict(BaseModel):
    kind: Literal["drug", "disease"]
    certain: bool


GOOD = '{"kind": "drug", "certain": true}'
ASKED = [{"role": "user", "content": "阿莫西林怎么吃？"}]


@pytest.fixture
def client(llm, no_waiting, monkeypatch):
    # litellm's proxy, which other tests run in this process, sets this for good.
    monkeypatch.setattr(load_litellm(), "drop_params", False)
    llm.answer = lambda body: GOOD
    return LLMClient("openai/stand-in", base_url=llm.url, api_key=KEY, timeout=20)


def ask(client, messages=ASKED, **options):
    return asyncio.run(client.ask(messages, Verdict, **options))


async def all_of(client, questions):
    """Ask all questions at once."""
    await asyncio.gather(*(client.ask(one, Verdict) for one in questions))


def refusal(client, **options):
    with pytest.raises(LLMError) as caught:
        ask(client, **options)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return caught.value


def test_an_answer_is_the_schemas_object(llm, client):
    answer = ask(client, max_tokens=77)
    assert answer == Verdict(kind="drug", certain=True)
    (body,) = llm.requests
    assert llm.keys == {f"Bearer {KEY}"}
    assert body["model"] == "stand-in"
    assert body["messages"] == ASKED
    assert body["temperature"] == 0
    assert body["max_tokens"] == 77
    form = body["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["strict"] is True
    assert form["json_schema"]["schema"]["additionalProperties"] is False
    assert form["json_schema"]["schema"]["required"] == ["kind", "certain"]


@pytest.mark.parametrize("text", cases_of(__file__, "malformed_replies"))
def test_a_malformed_reply_is_asked_again_and_never_an_answer(llm, client, text):
    llm.faults = [Fault(text=text)]
    assert ask(client).kind == "drug"
    assert len(llm.requests) == 2
    llm.answer = lambda body: text
    error = refusal(client)
    assert error.cause == "malformed"
    assert len(llm.requests) == 7


def test_an_endpoint_that_refuses_schemas_is_asked_in_json_mode_ever_after(llm, client):
    llm.refuses_schemas = True
    assert ask(client).kind == "drug"
    assert ask(client).kind == "drug"
    forms = [body["response_format"]["type"] for body in llm.requests]
    assert forms == ["json_schema", "json_object", "json_object"]
    assert '"certain"' in llm.requests[-1]["messages"][-1]["content"]


def test_retry_after_beyond_the_budget_ends_at_once(llm, client):
    llm.faults = [Fault(429, headers={"Retry-After": "3600"})] * 2
    error = refusal(client)
    assert (error.cause, error.status) == ("timeout", 429)
    assert "3600 s" in str(error)
    assert len(llm.requests) == 1


def test_retry_after_is_read_in_every_form_and_does_no_harm_where_it_is_senseless():
    assert wait_in({"retry-after-ms": "1500", "retry-after": "2"}) == 1.5
    assert wait_in({"retry-after-ms": "soon", "retry-after": "2"}) == 2
    assert 0 < wait_in({"retry-after": formatdate(time.time() + 600, usegmt=True)}) <= 600
    for header in ("", "soon", "nan", "-5", "inf", f"Wed, 21 Oct {9**30} 07:28:00 GMT"):
        assert wait_in({"retry-after": header}) in (None, 0.0), header
    assert wait_in({}) is None


def test_a_missing_key_is_named(llm, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    error = refusal(LLMClient("openai/stand-in"))  # at the provider's own address
    assert error.cause == "setup"
    assert not missing(str(error), "set OPENAI_API_KEY", "TEACHER_API_KEY")
    llm.answer = lambda body: GOOD
    assert ask(LLMClient("openai/stand-in", base_url=llm.url)).certain  # many servers ask for none
    assert llm.keys == {None}


def test_keys_of_the_environment_do_not_reach_messages(llm, client, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-other-canary")
    said = '{"error": {"message": "bad sk-other-canary at http://me:word@host/"}}'
    llm.faults = [Fault(401, body=said)]
    text = str(refusal(client))
    assert "canary" not in text
    assert "word" not in text


def test_a_reply_that_its_limit_cut_is_asked_again_with_more_room(llm, client):
    """A model that thinks spends the limit on its thought."""
    cut = replying(finish="length", content="<think>The drug")
    llm.faults = [cut, cut]
    assert ask(client, max_tokens=100).certain
    assert [body["max_tokens"] for body in llm.requests] == [100, 200, 400]
    assert ask(client, max_tokens=100).certain
    assert llm.requests[-1]["max_tokens"] == 400, "the next question begins there"


def test_an_endpoint_without_more_room_is_asked_for_less_again(llm, client):
    llm.faults = [replying(finish="length", content="<think>")]
    llm.refuses = lambda body: "max_tokens is too large" if body["max_tokens"] > 100 else None
    assert ask(client, max_tokens=100).certain
    assert [body["max_tokens"] for body in llm.requests] == [100, 200, 100]


@pytest.mark.parametrize("content", [f"```JSON\n{GOOD}\n```", f"```json\n{GOOD}", f"```\n{GOOD}\n"])
def test_an_answer_in_a_block_of_code_is_read(llm, client, content):
    llm.faults = [replying(content=content)]
    assert ask(client).certain
    assert len(llm.requests) == 1


UNABLE = {"guided decoding is not enabled": 400, "Failed to generate JSON.": 400}
UNABLE["Grammar backend error"] = 500


@pytest.mark.parametrize(("message", "status"), UNABLE.items())
def test_an_endpoint_that_fails_at_a_schema_is_asked_for_less(llm, client, message, status):
    llm.faults = [Fault(status, body=json.dumps({"error": {"message": message}}))]
    assert ask(client).certain
    forms = [body["response_format"]["type"] for body in llm.requests]
    assert forms == ["json_schema", "json_object"]


def test_a_failure_that_passes_does_not_cost_the_schema(llm, client):
    llm.faults = [Fault(503, body='{"error": "application/json"}')] * 3
    assert ask(client).certain
    assert llm.requests[-1]["response_format"]["type"] == "json_schema"


def test_the_cache_answers_a_second_client(llm, client, tmp_path):
    cache = tmp_path / "new" / "c.sqlite"

    def new(url=llm.url):
        return LLMClient("openai/stand-in", base_url=url, api_key=KEY, cache=cache)

    ask(new())
    second = new()
    assert ask(second).kind == "drug"
    assert len(llm.requests) == 1
    assert second.usage == Usage(cached=1)
    assert cache.stat().st_mode & 0o077 == 0
    other = [{"role": "user", "content": "?"}]
    for options in ({"temperature": 0.5}, {"max_tokens": 9}, {"messages": other}):
        ask(new(), **options)
    elsewhere = new(llm.url.replace("127.0.0.1", "localhost"))
    ask(elsewhere)
    assert len(llm.requests) == 5, "the same name at another address is another model"


def test_one_question_of_many_tasks_is_one_call(llm, client, tmp_path):
    llm.delay = 0.2
    client = LLMClient("openai/m", base_url=llm.url, api_key=KEY, cache=tmp_path / "c")

    asyncio.run(all_of(client, [ASKED] * 6))
    assert (client.usage.cached, len(llm.requests)) == (5, 1)


def test_tokens_are_counted(llm, client):
    llm.faults = [Fault(text="malformed, and paid for")]
    ask(client)
    assert client.usage == Usage(2, 0, 20, 10)


def test_concurrency_is_limited(llm):
    together = threading.Barrier(3)  # each reply waits for two others that are asked for

    def answer(body):
        together.wait(60)
        return GOOD

    llm.answer = answer
    client = LLMClient("openai/m", base_url=llm.url, api_key=KEY, concurrency=3)

    questions = [[{"role": "user", "content": str(n)}] for n in range(12)]
    asyncio.run(all_of(client, questions))
    asyncio.run(all_of(client, questions))  # another loop, the same client
    assert llm.busiest == 3
