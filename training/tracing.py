"""What an episode leaves in the store, and what turns it into triplets.

With the LLM proxy (default) the proxy's spans hold the token ids, and the runner has to keep only what the agent
itself emits (`agl.emit_annotation`, `agl.emit_reward`, operations): `EpisodeTracer`, for many episodes at once.
Without it agent-lightning's client-side tracer records the calls in the runner, one episode at a time in a process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import aiohttp
from agentlightning import LightningStore
from agentlightning.emitter import emit_reward
from agentlightning.semconv import LightningResourceAttributes
from agentlightning.tracer.dummy import DummySpanRecordingContext, DummyTracer
from agentlightning.types import Span, SpanCoreFields
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanContext, Status, StatusCode
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_exponential

from training.plan import Plan

if TYPE_CHECKING:
    from agentlightning.adapter.triplet import TraceToTripletBase

SEND_ATTEMPTS = 4
SEND_SECONDS = 30.0

_episode: ContextVar[list[SpanCoreFields]] = ContextVar("episode")
_ids = RandomIdGenerator()


class EpisodeTracer(DummyTracer):
    """Keeps what agents emit apart by asyncio task: each episode's task calls `begin` and finds its own spans there.

    Threads and tasks that an episode starts belong to it. What is emitted outside of any episode raises LookupError.
    """

    def begin(self) -> list[SpanCoreFields]:
        """Start an episode in the current task; the list fills as the agent emits."""
        spans: list[SpanCoreFields] = []
        _episode.set(spans)
        return spans

    def create_span(self, *args: Any, **named: Any) -> SpanCoreFields:
        span = super().create_span(*args, **named)
        _episode.get().append(span)
        return span

    @contextmanager
    def operation_context(self, *args: Any, **named: Any) -> Iterator[DummySpanRecordingContext]:
        recording = None
        try:
            with super().operation_context(*args, **named) as recording:
                yield recording
        finally:
            if recording is not None:
                _episode.get().append(recording.get_recorded_span())


def result_spans(result: Any) -> list[SpanCoreFields]:
    """What an agent returned, as spans: nothing, a reward, or spans of its own.

    Raises:
        TypeError: it is none of these.
    """
    if result is None:
        return []
    if isinstance(result, bool | int | float):
        return [emit_reward(float(result), propagate=False)]
    if isinstance(result, list) and all(isinstance(span, SpanCoreFields) for span in result):
        return result
    raise TypeError(f"the agent returned {type(result).__name__}; expected None, a number or a list of SpanCoreFields")


class SpanSender:
    """Brings the spans of an attempt into the store, all with one request where it is served over HTTP."""

    def __init__(self, store: LightningStore) -> None:
        self.store = store
        self._http: aiohttp.ClientSession | None = None

    async def send(self, rollout_id: str, attempt_id: str, spans: Sequence[SpanCoreFields]) -> None:
        """Store the spans in this order, after those that are there.

        Raises:
            aiohttp.ClientError: the store took them at none of SEND_ATTEMPTS attempts.
        """
        if spans and self.store.capabilities.get("otlp_traces", False):
            await self._post(encode(spans, rollout_id, attempt_id))
        elif spans:
            await self._add(rollout_id, attempt_id, spans)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def _add(self, rollout_id: str, attempt_id: str, spans: Sequence[SpanCoreFields]) -> None:
        numbers = await self.store.get_many_span_sequence_ids([(rollout_id, attempt_id)] * len(spans))
        await self.store.add_many_spans(
            [
                Span.from_core_fields(span, rollout_id=rollout_id, attempt_id=attempt_id, sequence_id=number)
                for span, number in zip(spans, numbers, strict=True)
            ]
        )

    @retry(
        retry=retry_if_exception_type((aiohttp.ClientError, TimeoutError)),
        stop=stop_after_attempt(SEND_ATTEMPTS),
        wait=wait_exponential(max=5),
        reraise=True,
    )
    async def _post(self, body: bytes) -> None:
        if self._http is None:
            self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SEND_SECONDS))
        headers = {"content-type": "application/x-protobuf"}
        async with self._http.post(self.store.otlp_traces_endpoint(), data=body, headers=headers) as response:
            response.raise_for_status()


def encode(spans: Sequence[SpanCoreFields], rollout_id: str, attempt_id: str) -> bytes:
    """One OTLP request (protobuf) with all spans of an attempt; the store numbers them in this order."""
    resource = Resource(
        {
            LightningResourceAttributes.ROLLOUT_ID.value: rollout_id,
            LightningResourceAttributes.ATTEMPT_ID.value: attempt_id,
        }
    )
    trace_id = _ids.generate_trace_id()
    return bytes(encode_spans([_readable(span, trace_id, resource) for span in spans]).SerializeToString())


def _readable(span: SpanCoreFields, trace_id: int, resource: Resource) -> ReadableSpan:
    begin = span.start_time or 0.0
    return ReadableSpan(
        name=span.name,
        context=SpanContext(trace_id, _ids.generate_span_id(), is_remote=False),
        resource=resource,
        attributes=span.attributes,
        start_time=int(begin * 1e9),
        end_time=int((span.end_time or begin) * 1e9),
        status=Status(StatusCode[span.status.status_code], span.status.description),
    )


def trace_adapter(plan: Plan) -> TraceToTripletBase:
    """What turns a rollout's spans into triplets."""
    import agentlightning as agl

    return agl.LlmProxyTraceToTriplet() if plan.llm_proxy else agl.TracerTraceToTriplet()
