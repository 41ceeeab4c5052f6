"""The LLM proxy and the direct endpoint, real ones, before a stand-in vLLM that speaks its protocol
over HTTP.

Keeps of docs/architecture.md, "How a step runs": every call of the policy is in the store with the
token ids that vLLM read and generated, sampled as the trainer was told.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from contextvars import Context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import agentlightning as agl
import aiohttp
import httpx
import pytest
import uvicorn
from agentlightning import LightningStoreClient
from agentlightning.store.client_server import LightningStoreServer
from agentlightning.utils.server_launcher import PythonServerLauncherArgs
from litellm import ModelResponse
from omegaconf import OmegaConf

from common.access import TOKEN
from tests.training.standins import MODEL, StandInVllm, standing
from training.proxy.gate import CallGate, RequestSeeds
from training.proxy.middleware import TAKEN, RecordingMiddleware, take_from_body
from training.proxy.policy_access import RESOURCE, PolicyAccess, TakeTokenIds
from training.proxy.recorder import LOG_PROBS_ATTRIBUTE, VERSION_ATTRIBUTE, CallRecorder, Taken
from training.runners.tracing import ProxyTraceToTriplet
from training.setup.plan import Plan, RunStopped
from training.setup.ports import free_port

CALLS = "/rollout/ro/attempt/at/v1/chat/completions"
SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
VALIDATION = {"temperature": 0.25, "top_p": 0.5, "top_k": 7}


@pytest.fixture
def servers() -> Iterator[list[StandInVllm]]:
    with standing(2) as found:
        yield found


@pytest.fixture(autouse=True)
def no_earlier_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one asked litellm for would be asked for as long as this process lives."""
    monkeypatch.setattr("agentlightning.llm_proxy._callbacks_before_litellm_start", [])


@asynccontextmanager
async def serve_store() -> AsyncIterator[LightningStoreClient]:
    args = PythonServerLauncherArgs(
        host="127.0.0.1", port=free_port("127.0.0.1"), launch_mode="thread"
    )
    server = LightningStoreServer(agl.InMemoryLightningStore(thread_safe=True), launcher_args=args)
    await server.start()
    client = LightningStoreClient(f"http://127.0.0.1:{args.port}")
    try:
        yield client
    finally:
        await client.close()
        await server.stop()


def access(
    kind: str,
    servers: list[StandInVllm],
    store: LightningStoreClient,
    log_probs: bool = True,
    **changes: Any,
) -> PolicyAccess:
    """`changes` are of the plan."""
    plan = Plan(Path("."), "cpu", MODEL, 3, "test", 1.0, 32, 10.0, proxy=kind, **changes)
    rollout = {**SAMPLING, "val_kwargs": VALIDATION, "calculate_log_probs": log_probs}
    config = OmegaConf.create(
        {"data": {"seed": 42}, "actor_rollout_ref": {"model": {"path": MODEL}, "rollout": rollout}}
    )
    return PolicyAccess(plan, config, [f"127.0.0.1:{server.port}" for server in servers], store)


@asynccontextmanager
async def started(policy: PolicyAccess) -> AsyncIterator[None]:
    """With its proxy, until the block ends."""
    await policy.start()
    try:
        yield
    finally:
        await policy.stop()


async def llm_of(
    policy: PolicyAccess, store: LightningStoreClient, group: int, mode: str = "train"
) -> Any:
    """What the store names to the rollouts of a group."""
    resources = await store.get_resources_by_id(policy.resource(mode, group))
    assert resources is not None
    return resources.resources[RESOURCE]


async def ask(
    policy: PolicyAccess,
    store: LightningStoreClient,
    group: int,
    rollout: Any,
    text: str,
    mode: str = "train",
    key: str = "none",
) -> httpx.Response:
    llm = await llm_of(policy, store, group, mode)
    url = llm.get_base_url(rollout.rollout_id, rollout.attempt.attempt_id) + "/chat/completions"
    body = {
        "model": llm.model,
        "messages": [{"role": "user", "content": text}],
        **llm.sampling_parameters,
    }
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
    kind: str, servers: list[StandInVllm], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "DATABASE_URL", "sqlite:///own.db"
    )  # the agent's, and nothing of the proxy's
    async with serve_store() as store:
        policy = access(kind, servers, store)
        async with started(policy):
            await policy.check_engine()
            first, second = await store.start_rollout(input={}), await store.start_rollout(input={})
            policy.weights_version, began = 4, time.time()
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
    assert [span.attributes[VERSION_ATTRIBUTE] for span in spans] == [4, 4, 4]
    assert all(began <= span.start_time <= span.end_time <= time.time() for span in spans)
    assert [span.name for span in spans + others] == ["raw_gen_ai_request"] * 4
    found = [json.loads(span.attributes[LOG_PROBS_ATTRIBUTE]) for span in spans]
    assert found == [[-0.5, -1.0], [-0.5, -2.0], [-0.5, -3.0]]
    assert "-0.5" not in reply.text
    assert reply.json()["choices"][0].get("logprobs") is None
    assert [len(server.requests) for server in servers] == [3, 2]
    assert not any("seed" in request for server in servers for request in server.requests)
    assert all(request["return_token_ids"] for server in servers for request in server.requests)
    assert {request["model"] for server in servers for request in server.requests} == {MODEL}
    assert "access-control-allow-origin" not in reply.headers
    assert reply.headers["content-type"] == "application/json"
    assert reply.json()["choices"][0]["message"]["content"] == "好"
    assert "token_ids" not in reply.text
    assert refused.status_code == 400
    assert "maximum context length" in refused.text


async def test_both_endpoints_leave_the_same_spans(servers: list[StandInVllm]) -> None:
    """But for names that are drawn at random, and times."""

    async def played(kind: str) -> list[Any]:
        async with serve_store() as store:
            policy = access(kind, servers, store)
            async with started(policy):
                rollout = await store.start_rollout(input={})
                for text in ("一", "too long", "二"):
                    await ask(policy, store, 0, rollout, text)
                return await spans_of(store, rollout.rollout_id, 2)

    found = []
    for kind in ("direct", "litellm"):
        for server in servers:
            server.requests.clear()
        spans = await played(kind)
        assert len(spans) == 2
        found.append(
            [
                (span.name, span.status, span.sequence_id, without_random_names(span.attributes))
                for span in spans
            ]
        )
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_calls_that_wait_for_company_are_sent_before_the_proxy_ends(
    kind: str, servers: list[StandInVllm], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.proxy.recorder.GATHER_SECONDS", 3600)
    async with serve_store() as store:
        policy = access(kind, servers, store)
        async with started(policy):
            rollout = await store.start_rollout(input={})
            assert (await ask(policy, store, 0, rollout, "一")).status_code == 200
        assert len(await store.query_spans(rollout.rollout_id)) == 1


def without_random_names(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if not name.endswith(".id")}


async def test_a_call_is_stamped_with_the_weights_that_answered_it(
    servers: list[StandInVllm],
) -> None:
    """A change that waits for the call goes on as soon as it has left the gate."""

    class ChangesAtOnce(CallGate):
        async def __aexit__(self, *error: object) -> None:
            await super().__aexit__(*error)
            policy.weights_version += 1

    async with serve_store() as store:
        policy = access("direct", servers, store)
        policy.gate, policy.weights_version = ChangesAtOnce(), 4
        async with started(policy):
            rollout = await store.start_rollout(input={})
            for text in ("一", "二"):
                await ask(policy, store, 0, rollout, text)
            spans = await spans_of(store, rollout.rollout_id, 2)
    assert [span.attributes[VERSION_ATTRIBUTE] for span in spans] == [4, 5]


async def test_the_first_call_after_a_change_finds_its_number(servers: list[StandInVllm]) -> None:
    seen = []

    class Looks(CallGate):
        def open(self) -> None:
            seen.append(policy.weights_version)
            super().open()

    async with serve_store() as store:
        policy = access("direct", servers, store)
        policy.gate = Looks()
        with policy.changing_weights(5):
            pass
        with pytest.raises(ValueError, match="no weights"), policy.changing_weights(6):
            raise ValueError("no weights")
    assert seen == [5, 5]


@pytest.mark.parametrize(("mode", "sampling"), [("train", SAMPLING), ("val", VALIDATION)])
async def test_training_and_validation_are_each_sampled_as_they_are_told(
    servers: list[StandInVllm], mode: str, sampling: dict[str, float]
) -> None:
    """Swapped, the policy would be trained on tokens drawn from a distribution that verl does not
    compute.
    """
    async with serve_store() as store:
        policy = access("direct", servers, store)
        async with started(policy):
            await ask(policy, store, 0, await store.start_rollout(input={}), "一", mode)
    (request,) = servers[0].requests
    assert {name: request[name] for name in SAMPLING} == sampling
    assert request["max_tokens"] == 32


async def test_a_url_is_published_as_it_is_where_tls_ends_before_the_proxy(
    servers: list[StandInVllm],
) -> None:
    async with serve_store() as store:
        policy = access("direct", servers, store, proxy_public_host="https://llm.example.org/")
        async with started(policy):
            llm = await llm_of(policy, store, 0)
    assert llm.get_base_url("ro", "at") == "https://llm.example.org/rollout/ro/attempt/at"


@pytest.mark.parametrize(
    ("host", "named"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", socket.gethostname())]
)
async def test_a_proxy_on_all_addresses_is_published_by_the_name_of_its_machine(
    host: str, named: str, servers: list[StandInVllm]
) -> None:
    async with serve_store() as store:
        policy = access("direct", servers, store, proxy_host=host)
        async with started(policy):
            llm = await llm_of(policy, store, 0)
    assert llm.get_base_url("ro", "at").startswith(f"http://{named}:")


async def test_without_a_proxy_episodes_ask_vllm_as_the_run_samples(
    servers: list[StandInVllm],
) -> None:
    async with serve_store() as store:
        policy = access("direct", servers, store, llm_proxy=False)
        async with started(policy):
            llms = [await llm_of(policy, store, group) for group in (0, 1)]
            validated = await llm_of(policy, store, 0, "val")
    assert {llm.endpoint for llm in llms} == {
        f"http://127.0.0.1:{server.port}/v1" for server in servers
    }
    assert {llm.model for llm in llms} == {MODEL}
    asked = {"max_tokens": 32, "return_token_ids": True}
    assert llms[0].sampling_parameters == {**SAMPLING, **asked}
    assert validated.sampling_parameters == {**VALIDATION, **asked}


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_log_probs_are_left_out_where_verl_does_not_want_them(
    kind: str, servers: list[StandInVllm]
) -> None:
    async with serve_store() as store:
        policy = access(kind, servers, store, log_probs=False)
        async with started(policy):
            rollout = await store.start_rollout(input={})
            await ask(policy, store, 0, rollout, "一")
            spans = await spans_of(store, rollout.rollout_id, 1)
    assert LOG_PROBS_ATTRIBUTE not in spans[0].attributes
    assert not servers[0].requests[0].get("logprobs")


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_a_deterministic_run_seeds_every_call(kind: str, servers: list[StandInVllm]) -> None:
    async with serve_store() as store:
        policy = access(kind, servers, store, deterministic=True)
        async with started(policy):
            rollout = await store.start_rollout(input={})
            for text in ("一", "一", "二"):
                assert (await ask(policy, store, 0, rollout, text)).status_code == 200
    assert len({request["seed"] for request in servers[0].requests}) == 3


async def test_a_seed_follows_from_the_run_s_and_from_the_weights(
    servers: list[StandInVllm],
) -> None:
    async with serve_store() as store:
        policy = access("direct", servers, store, deterministic=True)
        async with started(policy):
            rollout = await store.start_rollout(input={})
            for policy.weights_version in (3, 4):
                await ask(policy, store, 0, rollout, "一")
    seeds = RequestSeeds(42)
    asked = json.dumps(servers[0].requests[0]).encode()
    expected = [json.loads(seeds.add(asked, version))["seed"] for version in (3, 4)]
    assert [request["seed"] for request in servers[0].requests] == expected


async def test_what_gets_a_seed_is_still_a_whole_request() -> None:
    """The proxy behind it finds the headers that the agent sent, the length of the new body, and
    hears of an agent that is gone.
    """
    recorder = CallRecorder(
        "http://127.0.0.1:1/v1/traces", lambda: 0, CallGate(), RequestSeeds(42), None
    )
    body = b'{"messages": []}'
    sent = [{"type": "http.request", "body": body}, {"type": "http.disconnect"}]
    seen = {}

    async def behind(scope: Any, receive: Any, send: Any) -> None:
        seen.update(scope, request=await receive(), then=await receive())

    async def receive() -> Any:
        return sent.pop(0)

    async def send(message: Any) -> None:
        raise AssertionError(f"nothing was answered, and yet {message} arrives")

    headers = [(b"x-own", b"1"), (b"Content-Length", str(len(body)).encode())]
    scope = {"type": "http", "method": "POST", "path": CALLS, "headers": headers}
    await RecordingMiddleware(behind, recorder)(scope, receive, send)
    length = str(len(seen["request"]["body"])).encode()
    assert seen["headers"] == [(b"x-own", b"1"), (b"content-length", length)]
    assert json.loads(seen["request"]["body"])["seed"] >= 0
    assert seen["then"] == {"type": "http.disconnect"}


async def test_a_reply_from_which_nothing_was_taken_arrives_and_is_not_recorded() -> None:
    recorder = CallRecorder("http://127.0.0.1:9/v1/traces", lambda: 0, CallGate(), None, None)
    answered: list[Any] = []

    async def behind(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}"}

    async def send(message: Any) -> None:
        answered.append(message)

    scope = {"type": "http", "method": "POST", "path": CALLS, "headers": []}
    await RecordingMiddleware(behind, recorder)(scope, receive, send)
    assert [message["type"] for message in answered] == [
        "http.response.start",
        "http.response.body",
    ]


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_vllm_is_shown_the_run_s_token(
    kind: str, servers: list[StandInVllm], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every call would be refused: vLLM asks for it."""
    monkeypatch.setenv(TOKEN, "drawn")
    async with serve_store() as store:
        policy = access(kind, servers, store, token="drawn")
        async with started(policy):
            rollout = await store.start_rollout(input={})
            reply = await ask(policy, store, 0, rollout, "一", key="drawn")
    assert reply.status_code == 200
    assert servers[0].keys == ["Bearer drawn"]


async def test_as_many_calls_are_in_flight_as_runners_play(servers: list[StandInVllm]) -> None:
    """More than the hundred connections that a client opens unless told otherwise."""
    count = 101
    together = asyncio.Barrier(count)  # of the stand-in's event loop, in its own thread
    answer = servers[0].__call__

    async def answer_together(scope: Any, receive: Any, send: Any) -> None:
        async with asyncio.timeout(30):  # where one is held back, it fails and does not hang
            await together.wait()
        await answer(scope, receive, send)

    servers[0].server.config.loaded_app = answer_together
    async with serve_store() as store:
        policy = access("direct", servers, store)
        async with started(policy):
            rollout: Any = await store.start_rollout(input={})
            llm = await llm_of(policy, store, 0)
            base = llm.get_base_url(rollout.rollout_id, rollout.attempt.attempt_id)
            body = {"model": "policy-0", "messages": [{"role": "user", "content": "一"}]}
            async with httpx.AsyncClient(timeout=120, limits=httpx.Limits()) as client:
                asked = [client.post(f"{base}/chat/completions", json=body) for _ in range(count)]
                replies = await asyncio.gather(*asked)
    assert [reply.status_code for reply in replies] == [200] * count


async def test_a_call_may_take_longer_than_a_client_waits_by_itself(
    servers: list[StandInVllm], monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiohttp's own five minutes would cut off long replies of a slow machine."""
    monkeypatch.setattr("aiohttp.client.DEFAULT_TIMEOUT", aiohttp.ClientTimeout(total=1))
    servers[0].before = lambda request: time.sleep(1.5)
    async with serve_store() as store:
        policy = access("direct", servers, store)
        async with started(policy):
            reply = await ask(policy, store, 0, await store.start_rollout(input={}), "一")
    assert reply.status_code == 200


async def test_an_engine_that_says_it_is_dead_is_named(servers: list[StandInVllm]) -> None:
    """vLLM's server answers on when its engine has died."""
    servers[1].healthy = False
    async with serve_store() as store:
        policy = access("direct", servers, store, llm_proxy=False)
        with pytest.raises(RunStopped, match=f"vLLM at http://127.0.0.1:{servers[1].port}/health"):
            await policy.check_engine()


async def test_a_proxy_that_is_gone_is_named(
    servers: list[StandInVllm], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what lives is asked directly, whatever proxy the environment names."""
    async with serve_store() as store:
        policy = access("direct", servers, store)
        async with started(policy):
            with monkeypatch.context() as surroundings:
                surroundings.setenv("ALL_PROXY", "http://127.0.0.1:1")
                await policy.check_engine()
        with pytest.raises(RunStopped, match="the LLM proxy at"):
            await policy.check_engine()


async def test_the_idle_share_is_of_the_time_since_the_last_look(
    servers: list[StandInVllm], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter([100.0, 110.0, 120.0, 130.0])
    busy = iter([4.0, 9.0, 25.0])
    clock = SimpleNamespace(monotonic=lambda: next(now))
    monkeypatch.setattr("training.proxy.policy_access.time", clock)
    async with serve_store() as store:
        policy = access("direct", servers, store)
        monkeypatch.setattr(policy.gate, "busy_seconds", lambda: next(busy))
        assert [policy.idle_share() for _ in range(3)] == [pytest.approx(0.6), 0.5, 0.0]


async def test_without_a_proxy_no_idle_share_is_known(servers: list[StandInVllm]) -> None:
    async with serve_store() as store:
        assert access("direct", servers, store, llm_proxy=False).idle_share() is None


async def test_direct_refuses_what_it_cannot_do(servers: list[StandInVllm]) -> None:
    async with serve_store() as store:
        policy = access("direct", servers, store)
        async with started(policy):
            url = f"{policy.address}{CALLS}"
            async with httpx.AsyncClient() as client:
                answers = {
                    "not json": await client.post(url, content=b"{"),
                    "no rollout": await client.post(f"{policy.address}/v1/chat/completions"),
                    "no model": await client.post(url, json={"messages": []}),
                    "unknown": await client.post(url, json={"model": "other", "messages": []}),
                    "stream": await client.post(
                        url, json={"model": "policy-0", "messages": [], "stream": True}
                    ),
                    "route": await client.get(f"{policy.address}/v1/models"),
                }
            servers[0].stop()
            rollout = await store.start_rollout(input={})
            dead = await ask(policy, store, 0, rollout, "一")
            with pytest.raises(RunStopped, match="vLLM at"):
                await policy.check_engine()
    assert {name: answer.status_code for name, answer in answers.items()} == {
        "not json": 400,
        "no rollout": 404,
        "no model": 400,
        "unknown": 404,
        "stream": 400,
        "route": 404,
    }
    said = {name: answers[name].json()["error"] for name in ("not json", "unknown", "stream")}
    assert "no JSON" in said["not json"]["message"]
    assert "policy-0, policy-1" in said["unknown"]["message"]
    assert "use --proxy litellm" in said["stream"]["message"]
    assert {error["type"] for error in said.values()} == {"invalid_request_error"}
    assert dead.status_code == 502
    assert f"vLLM at http://127.0.0.1:{servers[0].port}" in dead.text


async def test_calls_wait_for_a_store_that_is_away() -> None:
    """A store that answers only the third time gets every call, once, in order."""
    seen: list[bytes] = []

    async def flaky(scope: Any, receive: Any, send: Any) -> None:
        parts = [await receive()]
        while parts[-1].get(
            "more_body"
        ):  # a body comes in as many parts as the network cuts it into
            parts.append(await receive())
        seen.append(b"".join(part["body"] for part in parts))
        await send(
            {"type": "http.response.start", "status": 200 if len(seen) > 2 else 503, "headers": []}
        )
        await send({"type": "http.response.body", "body": b""})

    port = free_port("127.0.0.1")
    server = uvicorn.Server(
        uvicorn.Config(flaky, host="127.0.0.1", port=port, log_level="error", lifespan="off")
    )
    serving = asyncio.create_task(server.serve())
    recorder = CallRecorder(f"http://127.0.0.1:{port}/v1/traces", lambda: 0)
    for number in range(3):
        recorder.record("ro", "at", Taken(f"r{number}", [1], [2], None), 1.0)
    while len(seen) < 3:
        await asyncio.sleep(0.01)
    await recorder.close()
    server.should_exit = True
    await serving
    assert seen[0] == seen[1] == seen[2]
    assert [seen[2].index(f"r{number}".encode()) for number in range(3)] == sorted(
        seen[2].index(f"r{number}".encode()) for number in range(3)
    )
    assert recorder.lost == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"token_ids": [1]}]}',
        b'{"choices": 3}',
        b"not json",
    ],
)
def test_replies_without_token_ids_are_not_recorded(body: bytes) -> None:
    TAKEN.set([])
    assert take_from_body(body) == body
    assert TAKEN.get() == []


def test_token_ids_are_taken_from_a_reply_without_log_probs() -> None:
    TAKEN.set([])
    body = b'{"id": "x", "prompt_token_ids": [1], "choices": [{"token_ids": [2]}]}'
    assert json.loads(take_from_body(body)) == {"id": "x", "choices": [{}]}
    assert TAKEN.get() == [Taken("x", [1], [2], None)]


@pytest.mark.parametrize(
    "reply",
    [
        {"choices": [{"message": {"content": "好"}}]},
        {"choices": [{"message": {"content": "好"}}], "prompt_token_ids": [1]},
        {"choices": [], "prompt_token_ids": [1]},
    ],
)
async def test_litellm_s_replies_without_token_ids_are_left_alone(reply: dict[str, Any]) -> None:
    TAKEN.set([])
    response = ModelResponse(**reply)
    response.choices = response.choices if reply["choices"] else []
    before = response.model_dump()
    assert await TakeTokenIds().async_post_call_success_hook({}, None, response) is response
    assert response.model_dump() == before
    assert TAKEN.get() == []


async def test_litellm_s_reply_to_a_call_of_no_rollout_keeps_its_token_ids() -> None:
    fields = {"provider_specific_fields": {"token_ids": [2]}, "message": {"content": "好"}}
    response = ModelResponse(choices=[fields], prompt_token_ids=[1])
    before = response.model_dump()
    hook = TakeTokenIds().async_post_call_success_hook
    await asyncio.create_task(hook({}, None, response), context=Context())
    assert response.model_dump() == before


def test_a_call_of_no_rollout_keeps_its_token_ids() -> None:
    body = b'{"id": "x", "prompt_token_ids": [1], "choices": [{"token_ids": [2]}]}'
    assert Context().run(take_from_body, body) == body
