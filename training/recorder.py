"""Writes the policy's calls into the store: one span a call, many calls a request.

agent-lightning's own tracing makes seven OpenTelemetry spans of every call the LLM proxy answers and sends them one
call at a time, which costs more than the proxy itself. Training needs one: `raw_gen_ai_request` with the token ids,
which `LlmProxyTraceToTriplet` reads. `RecordingMiddleware` takes it from the reply as it passes; `CallRecorder` sends
what has gathered as one OTLP request, which the store numbers in the order of its spans. Used by `training.proxy`.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, ClassVar

import aiohttp
import orjson
from agentlightning.semconv import LightningResourceAttributes
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from tenacity import AsyncRetrying, before_sleep_log, retry_if_exception_type, stop_after_delay, wait_random_exponential

from training.gate import CallGate

logger = logging.getLogger(__name__)

SPAN_NAME = "raw_gen_ai_request"
VERSION_ATTRIBUTE = "policy.version"
GATHER_SECONDS = 0.005  # how long a finished call may wait for company; a request to the store costs about that much
OUTAGE_SECONDS = 60.0  # how long calls are kept for a store that does not answer
ROUTE = re.compile(r"^/rollout/([^/]+)/attempt/([^/]+)(/.*)?$")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class RecordedCall:
    """One answered call: token ids of prompt and reply, Unix times in seconds, and the weights that answered it."""

    rollout_id: str
    attempt_id: str
    response_id: str
    prompt_ids: list[int]
    response_ids: list[int]
    started: float
    ended: float
    version: int


class CallRecorder:
    """Gathers answered calls and sends them to the store's OTLP endpoint, in order. Lives on one event loop.

    Args:
        endpoint: URL of the store's OTLP traces endpoint.
        version: returns the number of the weights vLLM serves now; a call is stamped with it as it ends.
        gate: what a call passes; it keeps the weights as they are until the call is recorded.
    """

    def __init__(self, endpoint: str, version: Callable[[], int], gate: CallGate | None = None) -> None:
        self.endpoint = endpoint
        self.version = version
        self.gate = gate or CallGate()
        self.recorded = 0
        self.lost = 0
        self._waiting: list[RecordedCall] = []
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def record(self, call: RecordedCall) -> None:
        """Queue a call; it is in the store some milliseconds later."""
        self._waiting.append(call)
        self.recorded += 1
        self._news.set()
        if self._task is None:
            self._task = asyncio.create_task(self._send_forever())

    async def close(self) -> None:
        """Send what is left; returns at once when nothing was ever recorded."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        async with aiohttp.ClientSession() as session:
            await self._send_waiting(session)

    async def _send_forever(self) -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            while True:
                await self._news.wait()
                await asyncio.sleep(GATHER_SECONDS)
                self._news.clear()
                await self._send_waiting(session)

    async def _send_waiting(self, session: aiohttp.ClientSession) -> None:
        """Send all that waits; calls a dead store did not take are lost, counted and missed by the collector."""
        calls, self._waiting = self._waiting, []
        if not calls:
            return
        body = export_request(calls).SerializeToString()
        retrying = AsyncRetrying(
            stop=stop_after_delay(OUTAGE_SECONDS),
            wait=wait_random_exponential(multiplier=0.2, max=5.0),
            retry=retry_if_exception_type((aiohttp.ClientError, TimeoutError)),
            before_sleep=before_sleep_log(logger, logging.WARNING),
            reraise=True,
        )
        try:
            await retrying(self._post, session, body)
        except (aiohttp.ClientError, TimeoutError) as error:
            self.lost += len(calls)
            logger.error("%d calls could not be written to the store: %s", len(calls), error)
        except asyncio.CancelledError:
            self._waiting = calls + self._waiting
            raise

    async def _post(self, session: aiohttp.ClientSession, body: bytes) -> None:
        headers = {"Content-Type": "application/x-protobuf"}
        async with session.post(self.endpoint, data=body, headers=headers) as reply:
            reply.raise_for_status()


def export_request(calls: list[RecordedCall]) -> ExportTraceServiceRequest:
    """The OTLP request of these calls, in order: one span each, without a sequence id, which the store issues."""
    return ExportTraceServiceRequest(resource_spans=[_resource_spans(call) for call in calls])


def _resource_spans(call: RecordedCall) -> ResourceSpans:
    spans = ResourceSpans()
    spans.resource.attributes.extend(
        [
            _text(LightningResourceAttributes.ROLLOUT_ID.value, call.rollout_id),
            _text(LightningResourceAttributes.ATTEMPT_ID.value, call.attempt_id),
        ]
    )
    span = spans.scope_spans.add().spans.add()
    span.name = SPAN_NAME
    span.trace_id, span.span_id = secrets.token_bytes(16), secrets.token_bytes(8)
    span.start_time_unix_nano, span.end_time_unix_nano = int(call.started * 1e9), int(call.ended * 1e9)
    # Lists as text, as litellm's tracing writes them: a protobuf list of numbers takes the store far longer to read.
    span.attributes.extend(
        [
            _text("llm.hosted_vllm.id", call.response_id),
            _text("llm.hosted_vllm.prompt_token_ids", orjson.dumps(call.prompt_ids).decode()),
            _text("llm.hosted_vllm.response_token_ids", orjson.dumps([call.response_ids]).decode()),
            KeyValue(key=VERSION_ATTRIBUTE, value=AnyValue(int_value=call.version)),
        ]
    )
    return spans


def _text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


class RecordingMiddleware:
    """Strips `/rollout/{id}/attempt/{id}` from a request's path and records the reply's token ids on their way out.

    The token ids do not travel on to the agent, which has no use for them. A reply without them (an error, another
    route) passes as it is. Plain ASGI: Starlette's BaseHTTPMiddleware costs a task and a queue a request.
    """

    default: ClassVar[CallRecorder | None] = None  # for agent-lightning, which makes the middleware without arguments

    def __init__(self, app: App, recorder: CallRecorder | None = None) -> None:
        self.app = app
        self._recorder = recorder

    @property
    def recorder(self) -> CallRecorder:
        """Where this middleware records; looked up late, since litellm's app outlives a proxy in the same process."""
        recorder = self._recorder or self.default
        if recorder is None:
            raise RuntimeError("RecordingMiddleware serves calls before it was given a recorder")
        return recorder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, lambda: self._until_shutdown(receive), send)
        route = ROUTE.match(scope["path"]) if scope["type"] == "http" else None
        if route is None:
            return await self.app(scope, receive, send)
        path = route[3] or "/"
        inner = {**scope, "path": path, "raw_path": path.encode()}
        reply = _HeldReply(send)
        async with self.recorder.gate:
            started = time.time()
            await self.app(inner, receive, reply)
            reply.change(lambda body: self._record(route[1], route[2], started, body))
        await reply.release()
        return None

    async def _until_shutdown(self, receive: Receive) -> Message:
        """Pass the server's messages on; what is recorded is sent before the loop it lives on ends."""
        message = await receive()
        if message["type"] == "lifespan.shutdown":
            await self.recorder.close()
        return message

    def _record(self, rollout_id: str, attempt_id: str, started: float, body: bytes) -> bytes:
        """Record the call a successful reply answers; returns the reply without its token ids."""
        found = take_token_ids(body)
        if found is None:
            return body
        reply, prompt_ids, response_ids = found
        version = self.recorder.version()
        call = RecordedCall(
            rollout_id, attempt_id, str(reply.get("id")), prompt_ids, response_ids, started, time.time(), version
        )
        self.recorder.record(call)
        return orjson.dumps(reply)


class _HeldReply:
    """An ASGI `send` that holds a reply back until it is complete."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._parts: list[bytes] = []

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._parts.append(message.get("body", b""))

    def change(self, change: Callable[[bytes], bytes]) -> None:
        """Put the body of a successful reply through `change`."""
        if self._start is not None and self._start["status"] == 200:
            self._parts = [change(b"".join(self._parts))]

    async def release(self) -> None:
        """Send the reply, if there was one."""
        if self._start is None:
            return
        body = b"".join(self._parts)
        headers = [(name, value) for name, value in self._start["headers"] if name.lower() != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
        await self._send({**self._start, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def take_token_ids(body: bytes) -> tuple[dict[str, Any], list[int], list[int]] | None:
    """Parse a completion and take its token ids out: (the rest, prompt ids, ids of the first choice).

    None where the body is no completion with both: vLLM writes `token_ids` into the choice, litellm moves them into
    the choice's `provider_specific_fields`.
    """
    try:
        reply = orjson.loads(body)
        choice = reply["choices"][0]
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
        return None
    prompt_ids = reply.pop("prompt_token_ids", None)
    response_ids = choice.pop("token_ids", None) or (choice.get("provider_specific_fields") or {}).pop(
        "token_ids", None
    )
    if not prompt_ids or not response_ids:
        return None
    return reply, prompt_ids, response_ids
