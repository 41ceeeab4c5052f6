"""What a store has of a call and a span, and how long one that is away is waited for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from agentlightning.types import SpanCoreFields, TraceStatus
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.training.conftest import enqueue, served
from training.proxy.recorder import CallRecorder, Taken
from training.store import store_client
from training.store.store_client import StoreClient

TOKEN = "token-of-the-store"
THEN = 1_700_000_000.0  # Unix seconds
TIMES = (THEN + 0.5, THEN + 4)


@asynccontextmanager
async def taking() -> AsyncIterator[tuple[Any, str, str]]:
    """A store that wants the token, with a rollout that is being played and its attempt."""
    async with served(token=TOKEN) as store:
        await enqueue(store, [{"name": "a"}])
        rollout = await store.dequeue_rollout()
        yield store, rollout.rollout_id, rollout.attempt.attempt_id


def core(begin: float | None = None, end: float | None = None) -> SpanCoreFields:
    told = {"status": TraceStatus(status_code="ERROR", description="why"), "attributes": {"a": 1}}
    return SpanCoreFields(name="n", start_time=begin, end_time=end, **told)


async def test_emitted_spans_are_in_the_store_as_they_were_and_in_order():
    """Taken for one, or under another attempt, a reward would be that of other tokens."""
    async with taking() as (store, rollout, attempt):
        spans = [(rollout, attempt, core(*times)) for times in (TIMES, TIMES[:1])]
        await store.send_spans(spans)
        await store.send_spans(spans[:1])
        found = list(await store.query_spans(rollout))
    begun, _ = TIMES  # one that says only when it began took no time
    assert [(span.start_time, span.end_time) for span in found] == [TIMES, (begun, begun), TIMES]
    for span in found:
        assert (span.name, span.attempt_id, span.attributes["a"]) == ("n", attempt, 1)
        assert (span.status.status_code, span.status.description) == ("ERROR", "why")


class Answering:
    """A store that keeps what is posted and answers with these statuses; None: it hangs."""

    def __init__(self, *statuses: int | None) -> None:
        self.statuses = list(statuses)
        self.posted: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.freed = asyncio.Event()

    async def take(self, request: web.Request) -> web.Response:
        self.posted.append(request)
        self.bodies.append(await request.read())
        status = self.statuses.pop(0) if self.statuses else 200
        if status is None:
            await self.freed.wait()
        return web.Response(status=status or 200)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/v1/traces", self.take)
        async with TestServer(app) as server:
            try:
                yield str(server.make_url("")).rstrip("/")
            finally:
                self.freed.set()


@pytest.fixture
def pauses(monkeypatch):
    """After which attempts there was a pause, of no length."""
    found: list[int] = []

    def pause(state: Any) -> float:
        found.append(state.attempt_number)
        return 0.0

    monkeypatch.setattr(store_client, "wait_random_exponential", lambda **limits: pause)
    return found


async def test_spans_are_sent_again_whole_while_the_store_is_away(pauses, monkeypatch, caplog):
    """A store that hangs is away, too; connections are kept."""
    monkeypatch.setattr(store_client, "REQUEST_SECONDS", 0.5)
    store = Answering(503, None)
    async with store.listening() as address:
        client = StoreClient(address, "secret")
        await client.send_spans([])
        assert store.posted == [], "nothing to send asks nobody"
        await client.send_spans([("ro", "at", core(1.0)), ("ro", "at", core(2.0))])
        await client.close()
    assert (len(store.bodies), len(set(store.bodies))) == (3, 1)
    assert store.bodies[0].count(b"why") == 2
    assert pauses == [1, 2]
    assert len([record for record in caplog.records if record.name == store_client.__name__])
    headers = {(one.headers["content-type"], one.headers["authorization"]) for one in store.posted}
    assert headers == {("application/x-protobuf", "Bearer secret")}


@pytest.mark.usefixtures("pauses")
async def test_calls_a_dead_store_did_not_take_are_counted(monkeypatch):
    """Those that came together go together."""
    monkeypatch.setattr(store_client, "OUTAGE_SECONDS", 0.0)
    store = Answering(503, 503, 503)
    async with store.listening() as address:
        recorder = CallRecorder(StoreClient(address))
        for number in range(2):
            recorder.record("ro", f"at{number}", Taken("r", [1], [2], None), 1.0)
        while recorder.lost < 2:  # else a call that is on its way is sent again
            await asyncio.sleep(0.01)
        recorder.record("ro", "at2", Taken("r", [1], [2], None), 1.5)
        await recorder.close()
        client = StoreClient(address)
        with pytest.raises(aiohttp.ClientResponseError):
            await client.send_spans([("ro", "at", core())])
        await client.close()
    assert [body.count(b"llm.hosted_vllm.id") for body in store.bodies] == [2, 1, 0]
    assert recorder.lost == 3
