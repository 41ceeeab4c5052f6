"""Spans into the store: many with one request, sent again while the store is away. The store numbers them in order."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import aiohttp
from agentlightning.semconv import LightningResourceAttributes
from agentlightning.types import SpanCoreFields
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanContext, Status, StatusCode
from tenacity import AsyncRetrying, before_sleep_log, retry_if_exception_type, stop_after_delay, wait_random_exponential

logger = logging.getLogger(__name__)

OUTAGE_SECONDS = 60.0  # how long spans are kept for a store that does not answer
REQUEST_SECONDS = 30.0
HEADERS = {"content-type": "application/x-protobuf"}

Emitted = tuple[str, str, SpanCoreFields]  # rollout id, attempt id, span
_ids = RandomIdGenerator()


class SpanSender:
    """A connection to stores that accept OTLP; belongs to one event loop."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def send(self, endpoint: str, spans: Sequence[Emitted]) -> None:
        """Store these spans in this order.

        Raises:
            aiohttp.ClientError, TimeoutError: the store at `endpoint` did not take them within OUTAGE_SECONDS.
        """
        retrying = AsyncRetrying(
            stop=stop_after_delay(OUTAGE_SECONDS),
            wait=wait_random_exponential(multiplier=0.2, max=5.0),
            retry=retry_if_exception_type((aiohttp.ClientError, TimeoutError)),
            before_sleep=before_sleep_log(logger, logging.WARNING),
            reraise=True,
        )
        if spans:
            await retrying(self._post, endpoint, encode(spans))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _post(self, endpoint: str, body: bytes) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS))
        async with self._session.post(endpoint, data=body, headers=HEADERS) as response:
            response.raise_for_status()


def encode(spans: Sequence[Emitted]) -> bytes:
    """The OTLP request (protobuf) of these spans."""
    return bytes(encode_spans([_readable(*span) for span in spans]).SerializeToString())


def _readable(rollout_id: str, attempt_id: str, span: SpanCoreFields) -> ReadableSpan:
    begin = span.start_time or 0.0
    owner = {
        LightningResourceAttributes.ROLLOUT_ID.value: rollout_id,
        LightningResourceAttributes.ATTEMPT_ID.value: attempt_id,
    }
    return ReadableSpan(
        name=span.name,
        context=SpanContext(_ids.generate_trace_id(), _ids.generate_span_id(), is_remote=False),
        resource=Resource(owner),
        attributes=span.attributes,
        start_time=int(begin * 1e9),
        end_time=int((span.end_time or begin) * 1e9),
        status=Status(StatusCode[span.status.status_code], span.status.description),
    )
