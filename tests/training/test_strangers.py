"""Store and proxy in front of people who should not be there, and of requests that mean nothing."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import agentlightning as agl
import httpx
import pytest
from agentlightning.types import Span
from fastapi.routing import APIRoute
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from bench import _storm as storm
from common.access import bearer
from common.settings import load_settings
from tests.messages import missing
from tests.training.conftest import HOST, enqueue, own_port, served
from tests.training.plans import plan_of
from tests.training.test_proxy import access, ask, servers, spans_of, started  # noqa: F401
from training.proxy import policy_access as proxy
from training.setup.plan import ConfigError
from training.store import __main__ as command
from training.store import live_store
from training.store.live_store import RunStore, make_server, serving
from training.store.store_checks import HEALTH_PATH, check_external
from training.store.store_client import _readable

TOKEN = "s3cret-of-the-store"
MALFORMED = 10_000
# Of litellm's 700 routes: they show settings, load models and start programs
LITELLMS = ("/", "/v1/models", "/docs", "/config/yaml", "/key/generate")
LITELLMS += ("/mcp-rest/test/connection",)
PAGE = {**bearer(TOKEN), "origin": "http://a.page"}


class Door:
    """A store with something in each collection, and a client that talks to its app."""

    def __init__(self, token: str | None, port: int = 1) -> None:
        self.store = RunStore()
        self.server = server = make_server(self.store, HOST, port, "thread", token)
        assert server.app is not None
        self.routes: list[tuple[str, str]] = []
        for route in server.app.routes:
            if isinstance(route, APIRoute):
                self.routes += [(method, route.path) for method in sorted(route.methods)]
        self.app: Any = server.server_launcher.app

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        llm = agl.ProxyLLM(endpoint="http://127.0.0.1:1", model="m")
        await self.store.add_resources({"main_llm": llm})
        await enqueue(self.store, [{"name": str(number)} for number in range(4)])
        for _ in range(3):
            taken: Any = await self.store.dequeue_rollout("runner")
        own = (taken.rollout_id, taken.attempt.attempt_id)
        await self.store.add_many_spans([span_of(*own)])
        await self.store.update_attempt(*own, status="succeeded")
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://store") as client:
            yield client

    def state(self) -> str:
        known = self.store.collections
        kept = [known.rollouts, known.attempts, known.spans, known.resources, known.workers]
        items = [kept_in._items for kept_in in (*kept, known.rollout_queue)]
        return repr([*items, known.span_sequence_ids._values, self.store.ended])


def span_of(rollout_id: str, attempt_id: str) -> Span:
    own = {"rollout_id": rollout_id, "attempt_id": attempt_id}
    return Span.from_attributes(attributes={"a": 1}, sequence_id=1, **own)


async def test_nothing_is_had_without_the_token():
    """Of no route, known or unknown, and a wrong token does not help."""
    door = Door(TOKEN)
    ends = {path.split("/")[-1] for _, path in door.routes}
    assert ends > {"traces", "queue", "ended", "dequeue", "enqueue"}
    async with door.client() as client:
        before = door.state()
        for method, path in [*door.routes, ("GET", "/assets/x.js"), ("POST", "/nowhere")]:
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}):
                answer = await client.request(method, filled(path, "x"), json={}, headers=headers)
                free = (method, path) == ("GET", HEALTH_PATH)
                assert answer.status_code == (200 if free else 401), (method, path)
        assert door.state() == before
        assert (await client.get("/v1/agl/statistics", headers=bearer(TOKEN))).is_success


async def test_the_run_s_own_store_has_the_run_s_token(tmp_path):
    settings: dict[str, Any] = {"store_port": own_port(), "store_token": TOKEN}
    plan = plan_of(tmp_path, **settings).store
    url = f"{plan.address}/v1/agl/statistics"
    async with serving(plan), httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(url)).status_code == 401
        assert (await client.get(url, headers=bearer(TOKEN))).status_code == 200


def test_a_plan_that_is_shown_does_not_say_the_token(tmp_path):
    """Whoever reads it in a log could read and change the run's store."""
    plan = plan_of(tmp_path, store_token=TOKEN)
    for shown in (str(plan), repr(plan), repr(replace(plan.store, role="runner"))):
        assert "managed=True" in shown
        assert TOKEN not in shown


def filled(path: str, *names: str) -> str:
    """A route's path with these in the place of its variables."""
    return re.sub(r"{[^}]*}", lambda _: storm.chance.choice(names), path)


@pytest.mark.system
async def test_malformed_requests_change_nothing(monkeypatch):
    monkeypatch.setattr(live_store, "MOST_BYTES", 2**19)
    door = Door(storm.TOKEN, own_port())
    door.app.most_per_second = MALFORMED
    posts = [path for method, path in door.routes if method == "POST"]
    async with door.client():
        held: Any = (await door.store.query_rollouts(status_in=["preparing"])).items[0]
        known = (held.rollout_id, held.attempt.attempt_id, "latest")
        names = (*known, "no", "%00", "../..", "x" * 5000)
        before = door.state()
        await door.server.start()
        try:
            route = lambda: filled(storm.chance.choice(posts), *names)  # noqa: E731
            answers = await storm.storm(door.server.endpoint, MALFORMED, route, 2**19)
        finally:
            await door.server.stop()
        assert door.state() == before
    assert_refused([one for one in answers if not one[1].endswith("/traces")])


def assert_refused(answers: list[storm.Answer]) -> None:
    """Each for what is wrong with it."""
    found = {(wrong, status) for wrong, _, status in answers}
    assert {status for wrong, status in found if wrong == "token"} == {401}
    assert 413 in {status for wrong, status in found if wrong == "size"} <= {0, 413}
    assert {status for wrong, status in found if wrong == "raw"} <= {0, 400}
    assert [one for one in answers if one[0] in ("body", "route") and one[2] < 400] == []


@pytest.mark.system
@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_malformed_calls_reach_no_model(kind, servers, monkeypatch):  # noqa: F811
    monkeypatch.setattr(proxy, "MOST_BYTES", 2**19)
    async with served(token=storm.TOKEN) as store:
        policy = access(kind, servers, store, store_token=storm.TOKEN)
        rollout = await store.start_rollout(input={})
        own = f"/rollout/{rollout.rollout_id}/attempt/{rollout.attempt.attempt_id}/v1/chat/completions"
        async with started(policy):
            route = lambda: storm.chance.choice([own, own.replace("/v1", "")])  # noqa: E731
            assert_refused(await storm.storm(policy.address, 1000, route, 2**19))
            assert servers[0].requests == servers[1].requests == []
            assert (await ask(policy, store, 0, rollout, "一", key=storm.TOKEN)).status_code == 200
            assert len(await spans_of(store, rollout.rollout_id, 1)) == 1


async def test_what_is_said_of_rollouts_that_are_not_there_keeps_no_others_out():
    """A late call of a released rollout may be sent together with others."""
    door = Door(None)
    gone = ("ro-gone", "at-gone", span_of("ro-gone", "at-gone"))
    async with door.client() as client:
        taken: Any = await door.store.dequeue_rollout("runner")
        rollout, attempt = taken.rollout_id, taken.attempt.attempt_id
        spans = [gone, (rollout, attempt, span_of(rollout, attempt))]
        body = encode_spans([_readable(*span) for span in spans]).SerializeToString()
        head = {"content-type": "application/x-protobuf"}
        assert (await client.post("/v1/traces", content=body, headers=head)).status_code == 200
        assert len(await door.store.query_spans(rollout)) == 1
        for path in ("/v1/agl/rollouts/ro-gone", "/v1/agl/rollouts/ro-gone/attempts/at-gone"):
            assert (await client.post(path, json={"status": "succeeded"})).status_code == 500


async def test_a_wrong_or_missing_token_is_said():
    async with served(token=TOKEN) as store:
        address = store.server_address_root
        await asyncio.to_thread(check_external, address, TOKEN)
        for token in (None, "wrong"):
            with pytest.raises(ConfigError, match="AGL_TOKEN"):
                await asyncio.to_thread(check_external, address, token)


@pytest.mark.parametrize("kind", ["direct", "litellm"])
async def test_the_proxy_answers_nobody_else(kind, servers, monkeypatch):  # noqa: F811
    """And vLLM, which asks for the token, is shown it."""
    monkeypatch.setenv("AGL_TOKEN", TOKEN)
    async with served(token=TOKEN) as store:
        policy = access(kind, servers, store, store_token=TOKEN)
        async with started(policy):
            rollout = await store.start_rollout(input={})
            assert (await ask(policy, store, 0, rollout, "一")).status_code == 401
            async with httpx.AsyncClient(base_url=policy.address, trust_env=False) as client:
                for path in LITELLMS:
                    for url in (path, f"/rollout/a/attempt/b{path}"):
                        assert (await client.post(url)).status_code == 401, url
                        known = await client.post(url, headers=PAGE)
                        assert known.status_code == 404, url
                        assert not any("access-control" in name for name in known.headers)
                asked = {**PAGE, "access-control-request-method": "POST"}
                path = "/rollout/a/attempt/b/chat/completions"
                preflight = await client.options(path, headers=asked)
            assert not any("access-control" in name for name in preflight.headers)
            assert servers[0].requests == []
            assert (await ask(policy, store, 0, rollout, "一", key=TOKEN)).status_code == 200
            assert len(await spans_of(store, rollout.rollout_id, 1)) == 1
            await policy.check_engine()
            published = await store.query_resources()
    assert servers[0].keys == [f"Bearer {TOKEN}"]
    assert TOKEN not in str(published), "who reads the disk does not know it yet"


@pytest.mark.parametrize("address", [[], ["--host", "0.0.0.0"]])
def test_a_store_needs_a_token_on_ones_own_machine_too(address, capsys, monkeypatch):
    monkeypatch.setattr(command, "serve", lambda *_: pytest.fail("it is served to everybody here"))
    monkeypatch.delenv("AGL_TOKEN", raising=False)
    load_settings.cache_clear()
    assert command.main(["serve", *address]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert not missing(line, "AGL_TOKEN", *address)


async def test_a_store_listens_where_it_was_told_and_shows_nobody_its_errors():
    class Broken(RunStore):
        async def query_rollouts(self, **asked: Any) -> Any:
            raise RuntimeError("of the inside")

    port = own_port()
    server = make_server(Broken(), "127.0.0.2", port, "thread")
    await server.start()
    try:
        async with httpx.AsyncClient(trust_env=False) as client:
            search = f"http://127.0.0.2:{port}/v1/agl/rollouts/search"
            answer = await client.post(search, json={})
            with pytest.raises(httpx.ConnectError):
                await client.get(f"http://127.0.0.1:{port}{HEALTH_PATH}")
    finally:
        await server.stop()
    assert answer.status_code == 500
    assert "of the inside" not in answer.text
