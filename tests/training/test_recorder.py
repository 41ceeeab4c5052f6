"""What is written of a call and of an emitted span, to the word, and for how long a store that is
away is waited for.

Keeps of docs/architecture.md, "How a step runs": every call is in the store with the token ids that
vLLM read and generated, or counted as lost. `test_proxy.py` sends the same over HTTP.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import aiohttp
import pytest
from agentlightning.types import SpanCoreFields, TraceStatus
from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.trace import StatusCode

from training.proxy import recorder as recorder_module
from training.proxy.gate import CallGate, RequestSeeds
from training.proxy.recorder import (
    LOG_PROBS_ATTRIBUTE,
    RESPONSE_ATTRIBUTE,
    SPAN_NAME,
    VERSION_ATTRIBUTE,
    CallRecorder,
    SpanSender,
    Taken,
    _readable,
    _span,
)


@pytest.mark.parametrize("log_probs", [None, [-0.5]])
def test_a_call_is_written_with_its_tokens_and_the_weights_that_answered(
    log_probs: list[float] | None,
) -> None:
    before = time.time()
    span = _span(Taken("reply", [1, 2], [3], log_probs), 7.5, 4)
    expected = {
        RESPONSE_ATTRIBUTE: "reply",
        "llm.hosted_vllm.prompt_token_ids": "[1,2]",
        "llm.hosted_vllm.response_token_ids": "[[3]]",
        VERSION_ATTRIBUTE: 4,
    }
    assert span.attributes == expected | (
        {} if log_probs is None else {LOG_PROBS_ATTRIBUTE: "[-0.5]"}
    )
    assert (span.name, span.status.status_code, span.start_time) == (SPAN_NAME, "OK", 7.5)
    assert span.end_time is not None
    assert before <= span.end_time <= time.time()


def core(begin: float | None = None, end: float | None = None) -> SpanCoreFields:
    status = TraceStatus(status_code="ERROR", description="why")
    return SpanCoreFields(
        name="n", status=status, attributes={"a": 1}, start_time=begin, end_time=end
    )


def test_a_span_is_sent_as_its_rollout_s_and_attempt_s_with_its_times_in_nanoseconds() -> None:
    """Under another attempt a reward would be that of tokens it was not earned with."""
    span = _readable("ro", "at", core(2.5, 4.0))
    owner = {name.rsplit(".", 1)[-1]: value for name, value in span.resource.attributes.items()}
    assert (owner["rollout_id"], owner["attempt_id"]) == ("ro", "at")
    assert (span.name, dict(span.attributes or {})) == ("n", {"a": 1})
    assert (span.start_time, span.end_time) == (2_500_000_000, 4_000_000_000)
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "why")
    again = _readable("ro", "at", core(2.5))
    assert again.end_time == 2_500_000_000, "one that says only when it began took no time"
    assert _readable("ro", "at", core()).start_time == 0
    assert span.context.is_remote is False
    ids = {(one.context.trace_id, one.context.span_id) for one in (span, again)}
    assert len(ids) == 2, "the store would take the second for the first"
    assert all(all(pair) for pair in ids)


class Away(SpanSender):
    """A sender whose store fails so many times."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors, self.posted = list(errors), list[tuple[str, bytes]]()

    async def _post(self, endpoint: str, body: bytes) -> None:
        self.posted.append((endpoint, body))
        if self.errors:
            raise self.errors.pop(0)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After which attempts there was a pause, of no length."""
    found: list[int] = []

    def pause(state: Any) -> float:
        found.append(state.attempt_number)
        return 0.0

    monkeypatch.setattr(recorder_module, "wait_random_exponential", lambda **limits: pause)
    return found


async def test_spans_are_sent_again_whole_while_the_store_is_away(
    pauses: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    sender = Away(aiohttp.ClientError("no"), TimeoutError())
    await sender.send("http://store", [("ro", "at", core(1.0)), ("ro", "at", core(2.0))])
    assert len(sender.posted) == 3
    assert len(set(sender.posted)) == 1
    assert pauses == [1, 2]
    assert len(caplog.messages) == 2
    endpoint, body = sender.posted[0]
    assert endpoint == "http://store"
    assert body.count(b"why") == 2
    assert type(body) is bytes


@pytest.mark.usefixtures("pauses")
async def test_other_errors_and_a_store_that_stays_away_are_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="ours"):
        await Away(ValueError("ours")).send("x", [("ro", "at", core())])
    monkeypatch.setattr(recorder_module, "OUTAGE_SECONDS", 0.0)
    with pytest.raises(aiohttp.ClientError, match="gone"):
        await Away(aiohttp.ClientError("gone"), aiohttp.ClientError("gone")).send(
            "x", [("ro", "at", core())]
        )


async def test_spans_are_posted_with_the_token_and_a_refusal_is_an_error() -> None:
    seen: list[Any] = []

    async def take(request: web.Request) -> web.Response:
        seen.append(
            (
                request.headers["content-type"],
                request.headers["authorization"],
                await request.read(),
            )
        )
        return web.Response(status=200 if len(seen) < 3 else 503)

    app = web.Application()
    app.router.add_post("/v1/traces", take)
    async with TestServer(app) as server:
        sender, endpoint = SpanSender("secret"), str(server.make_url("/v1/traces"))
        await sender._post(endpoint, b"one")
        session = sender._session
        await sender._post(endpoint, b"two")
        with pytest.raises(aiohttp.ClientResponseError):
            await sender._post(endpoint, b"three")
        assert sender._session is session, "connections are kept"
        await sender.close()
    assert seen == [
        ("application/x-protobuf", "Bearer secret", body) for body in (b"one", b"two", b"three")
    ]
    assert session
    assert session.closed
    assert session.timeout.total == recorder_module.REQUEST_SECONDS, (
        "a store that hangs would stop all that follows"
    )


async def test_nothing_to_send_asks_nobody() -> None:
    sender = Away(ValueError("asked"))
    await sender.send("x", [])
    assert sender.posted == []
    await sender.close()


async def test_calls_a_dead_store_did_not_take_are_counted() -> None:
    recorder = CallRecorder("http://store", lambda: 3)
    posted: list[Any] = []

    class Dead(SpanSender):
        async def send(self, endpoint: str, spans: Any) -> None:
            stamped = [
                (*owner, span.attributes[VERSION_ATTRIBUTE], span.start_time)
                for *owner, span in spans
            ]
            posted.append((endpoint, stamped))
            raise TimeoutError

    recorder._sender = Dead()
    for number in range(2):
        recorder.record("ro", f"at{number}", Taken("r", [1], [2], None), 1.0)
    while not posted:
        await asyncio.sleep(0.001)
    recorder.record("ro", "at2", Taken("r", [1], [2], None), 1.5)
    await recorder.close()
    first, then = [("ro", "at0", 3, 1.0), ("ro", "at1", 3, 1.0)], [("ro", "at2", 3, 1.5)]
    assert posted == [("http://store", first), ("http://store", then)]
    assert recorder.lost == 3


async def test_a_recorder_has_the_run_s_gate_seeds_and_token() -> None:
    """Past its gate calls would be answered while weights change; without its token the store takes
    none of them.
    """
    gate, seeds = CallGate(), RequestSeeds(1)
    recorder = CallRecorder("http://store", lambda: 0, gate, seeds, "secret")
    assert (recorder.gate, recorder.seeds) == (gate, seeds)
    assert recorder._sender._headers["Authorization"] == "Bearer secret"
    alone = CallRecorder("http://store", lambda: 0)
    assert "Authorization" not in alone._sender._headers
    async with alone.gate:
        pass


async def test_a_recorder_that_recorded_nothing_has_nothing_to_close() -> None:
    recorder = CallRecorder("http://store", lambda: 0)
    await recorder.close()
    assert (recorder.lost, recorder.endpoint, recorder.seeds) == (0, "http://store", None)


class Sender:
    """Takes what is sent as names of replies; the first time it never comes to an end."""

    def __init__(self) -> None:
        self.sent: list[list[str]] = []
        self.asked = asyncio.Event()

    async def send(self, endpoint: str, spans: Any) -> None:
        self.sent.append([span.attributes[RESPONSE_ATTRIBUTE] for _, _, span in spans])
        self.asked.set()
        if len(self.sent) == 1:
            await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing is open."""


async def test_a_request_cut_off_by_the_end_is_sent_again_with_what_came_after() -> None:
    """Lost, its calls would be missed by the collector, and their episodes left out as if the store
    were at fault.
    """
    recorder, sender = CallRecorder("nowhere", lambda: 0), Sender()
    recorder._sender = sender  # type: ignore[assignment]
    for name in ("r0", "r1"):
        recorder.record("ro", "at", Taken(name, [1], [2], None), 1.0)
    await asyncio.wait_for(sender.asked.wait(), 30)
    recorder.record("ro", "at", Taken("r2", [1], [2], None), 1.0)
    await recorder.close()
    assert sender.sent == [["r0", "r1"], ["r0", "r1", "r2"]]
    assert recorder.lost == 0
