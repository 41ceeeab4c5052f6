"""The LLM proxy and the direct endpoint, before a stand-in vLLM that speaks its protocol."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import agentlightning as agl
import httpx
import pytest
from agentlightning import LightningStoreClient
from omegaconf import OmegaConf
from uvicorn.config import HTTP_PROTOCOLS

from common import connections
from episodes.lit_agent import RESOURCE
from tests.training.conftest import served
from tests.training.plans import plan_of
from tests.training.standins import MODEL, StandInVllm, standing
from training.engine.collect import ProxyTraceToTriplet
from training.proxy.gate import RequestSeeds
from training.proxy.policy_access import PolicyAccess
from training.proxy.recorder import LOG_PROBS_ATTRIBUTE
from training.setup.plan import RunStopped

CALLS = "/rollout/ro/attempt/at/v1/chat/completions"
HALF = b"POST /v1/agl/waits/queue HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{"
SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
VALIDATION = {"temperature": 0.25, "top_p": 0.5, "top_k": 7}


@pytest.fixture
def servers():
    with standing(2) as found:
        yield found


@pytest.fixture(autouse=True)
def no_earlier_proxy(monkeypatch):
    """What one asked litellm for would be asked for as long as this process lives."""
    monkeypatch.setattr("agentlightning.llm_proxy._callbacks_before_litellm_start", [])


def access(kind: str, servers: list[StandInVllm], store: Any, **changes: Any) -> PolicyAccess:
    """`changes` are of the plan."""
    usual = {"model": MODEL, "max_tokens": 32, "episode_timeout": 10.0, "proxy_kind": kind}
    plan = plan_of(Path("."), **usual, **changes)
    rollout = {**SAMPLING, "val_kwargs": VALIDATION, "calculate_log_probs": True}
    policy = {"model": {"path": MODEL}, "rollout": rollout}
    config = OmegaConf.create({"data": {"seed": 42}, "actor_rollout_ref": policy})
    addresses = [f"127.0.0.1:{server.port}" for server in servers]
    return PolicyAccess(plan, config, addresses, store)


@asynccontextmanager
async def started(policy: PolicyAccess) -> AsyncIterator[None]:
    """With its proxy, until the block ends."""
    await policy.start()
    try:
        yield
    finally:
        await policy.stop()


async def llm_of(policy: PolicyAccess, store: LightningStoreClient, group: int) -> Any:
    """What the store names to the rollouts of a group."""
    resources = await store.get_resources_by_id(policy.resource("train", group))
    assert resources is not None
    return resources.resources[RESOURCE]


async def ask(
    policy: PolicyAccess, store: Any, group: int, rollout: Any, text: str, key: str = "none"
) -> httpx.Response:
    llm = await llm_of(policy, store, group)
    url = llm.get_base_url(rollout.rollout_id, rollout.attempt.attempt_id) + "/chat/completions"
    messages = [{"role": "user", "content": text}]
    body = {"model": llm.model, "messages": messages, **llm.sampling_parameters}
    async with httpx.AsyncClient(timeout=30) as client:
        headers = {"Authorization": f"Bearer {key}", "Origin": "http://page.example"}
        return await client.post(url, json=body, headers=headers)


async def spans_of(store: LightningStoreClient, rollout_id: str, count: int) -> list[Any]:
    for _ in range(200):
        spans = list(await store.query_spans(rollout_id))
        if len(spans) >= count:
            break
        await asyncio.sleep(0.02)
    return spans


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_calls_are_recorded_once_in_order_and_stay_with_one_server(
    kind, servers, monkeypatch
):
    monkeypatch.setenv("DATABASE_URL", "sqlite:///own.db")  # the agent's, not the proxy's
    async with served() as store:
        policy = access(kind, servers, store)
        async with started(policy):
            await policy.check_engine()
            first, second = await store.start_rollout(input={}), await store.start_rollout(input={})
            began = time.time()
            for text in ("一", "二", "三"):
                assert (await ask(policy, store, 0, first, text)).status_code == 200
            reply = await ask(policy, store, 1, second, "四")
            refused = await ask(policy, store, 1, second, "too long")
            spans = await spans_of(store, first.rollout_id, 3)
            others = await spans_of(store, second.rollout_id, 1)
    triplets = ProxyTraceToTriplet().adapt(spans)
    assert triplets == agl.LlmProxyTraceToTriplet().adapt(spans)
    assert [triplet.prompt["token_ids"] for triplet in triplets] == [[1, 2, 3]] * 3
    assert [triplet.response["token_ids"] for triplet in triplets] == [[7, 1], [7, 2], [7, 3]]
    assert all(began <= span.start_time <= span.end_time <= time.time() for span in spans)
    assert [span.name for span in spans + others] == ["raw_gen_ai_request"] * 4
    found = [json.loads(span.attributes[LOG_PROBS_ATTRIBUTE]) for span in spans]
    assert found == [[-0.5, -1.0], [-0.5, -2.0], [-0.5, -3.0]]
    assert "-0.5" not in reply.text
    assert reply.json()["choices"][0].get("logprobs") is None
    assert [len(server.requests) for server in servers] == [3, 2]
    for request in servers[0].requests + servers[1].requests:
        assert "seed" not in request
        assert request["return_token_ids"]
        assert request["model"] == MODEL
    assert "access-control-allow-origin" not in reply.headers
    assert reply.headers["content-type"] == "application/json"
    assert reply.json()["choices"][0]["message"]["content"] == "好"
    assert "token_ids" not in reply.text
    assert refused.status_code == 400
    assert "maximum context length" in refused.text


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({"proxy_host": "127.0.0.1"}, "http://127.0.0.1:"),
        ({"proxy_host": "0.0.0.0"}, f"http://{socket.gethostname()}:"),
        ({"proxy_public_host": "https://llm.example.org/"}, "https://llm.example.org/rollout/ro/"),
    ],
)
async def test_a_proxy_is_published_by_an_address_that_others_reach(told, named, servers):
    async with served() as store:
        policy = access("direct", servers, store, **told)
        async with started(policy):
            llm = await llm_of(policy, store, 0)
    assert llm.get_base_url("ro", "at").startswith(named)


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_a_deterministic_run_seeds_calls_from_its_seed_and_weights(kind, servers):
    async with served() as store:
        policy = access(kind, servers, store, deterministic=True)
        async with started(policy):
            rollout = await store.start_rollout(input={})
            for step in (None, None, 4):
                if step:
                    policy.serves_weights_of(step)
                assert (await ask(policy, store, 0, rollout, "一")).status_code == 200
    seeds = RequestSeeds(42)
    asked = servers[0].requests[0]
    expected = [seeds.add(asked)["seed"] for _ in range(2)]
    seeds.weights_of(4)
    expected.append(seeds.add(asked)["seed"])
    assert [request["seed"] for request in servers[0].requests] == expected
    assert len(set(expected)) == 3


async def test_a_proxy_that_is_gone_is_named(servers, monkeypatch):
    """And what lives is asked directly, whatever proxy the environment names."""
    async with served() as store:
        policy = access("direct", servers, store)
        async with started(policy):
            with monkeypatch.context() as surroundings:
                surroundings.setenv("ALL_PROXY", "http://127.0.0.1:1")
                await policy.check_engine()
        with pytest.raises(RunStopped, match="the LLM proxy at"):
            await policy.check_engine()


async def test_direct_refuses_what_it_cannot_do(servers):
    call = {"model": "policy-0", "messages": []}
    asked: dict[str, tuple[dict[str, Any], int, str]] = {
        "not json": ({"content": b"{"}, 400, "JSON"),
        "no model": ({"json": {"messages": []}}, 404, "policy-0, policy-1"),
        "unknown": ({"json": {**call, "model": "other"}}, 404, "policy-0, policy-1"),
    }
    async with served() as store:
        policy = access("direct", servers, store)
        async with started(policy):
            url = f"{policy.address}{CALLS}"
            async with httpx.AsyncClient() as client:
                for name, (body, status, named) in asked.items():
                    answer = await client.post(url, **body)
                    assert answer.status_code == status, name
                    assert named in answer.json()["error"]["message"]
                away = await client.post(f"{policy.address}/v1/chat/completions")
            servers[0].stop()
            rollout = await store.start_rollout(input={})
            dead = await ask(policy, store, 0, rollout, "一")
    assert (away.status_code, dead.status_code) == (404, 502)
    assert f"http://127.0.0.1:{servers[0].port}" in dead.text


@pytest.mark.parametrize("said", [{"error": {"message": "busy"}}, {"choices": []}, []])
async def test_a_reply_that_is_no_completion_is_handed_on_as_it_is(said, servers, monkeypatch):
    monkeypatch.setattr(servers[0], "complete", lambda request: (200, said))
    async with served() as store:
        policy = access("direct", servers, store)
        async with started(policy):
            rollout = await store.start_rollout(input={})
            reply = await ask(policy, store, 0, rollout, "一")
    assert (reply.status_code, reply.json()) == (200, said)


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_a_call_that_is_no_json_or_a_stream_or_says_where_it_goes_is_refused(kind, servers):
    call = b'{"model": "policy-0", "messages": [{"role": "user", "content": "x"}]'
    bodies = [
        call + b', "temperature": NaN}',
        call.replace(b'"x"', b'"\\ud800"') + b"}",
        call + b', "api_base": "http://127.0.0.1:1"}',
        b'["model"]',
        call + b', "stream": true}',
        call + b', "n": 2}',
    ]
    async with served() as store:
        policy = access(kind, servers, store)
        async with started(policy), httpx.AsyncClient(trust_env=False) as client:
            for body in bodies:
                answer = await client.post(policy.address + CALLS, content=body)
                assert answer.status_code == 400, body
    assert servers[0].requests == servers[1].requests == []


@pytest.mark.parametrize("server", ["store", "direct", "litellm"])
async def test_half_a_request_is_dropped(server, servers, monkeypatch):
    """Also where nobody has made such connections the usual ones, as vLLM's middleware does."""
    monkeypatch.setitem(HTTP_PROTOCOLS, "auto", "uvicorn.protocols.http.auto:AutoHTTPProtocol")
    for name in ("HEADER_SECONDS", "BODY_SECONDS", "SECOND_LOOK"):
        monkeypatch.setattr(connections, name, 0.05)
    async with served(token="s3cret") as store:
        kind = "direct" if server == "store" else server
        policy = access(kind, servers, store, store_token="s3cret")
        async with started(policy):
            address = store.server_address_root if server == "store" else policy.address
            for said in (b"", HALF[:40], HALF):
                port = int(address.rsplit(":", 1)[1])
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(said)
                with suppress(ConnectionResetError):
                    assert b"200 OK" not in await asyncio.wait_for(reader.read(), 60)
                writer.close()
            rollout = await store.start_rollout(input={})
            assert (await ask(policy, store, 0, rollout, "一", key="s3cret")).status_code == 200
