"""Writes the policy's calls into the store: one span a call, many calls a request.

agent-lightning's own tracing makes seven OpenTelemetry spans of every call the LLM proxy answers and sends them one
call at a time, which costs more than the proxy itself. Training needs one: `raw_gen_ai_request` with the token ids,
which `LlmProxyTraceToTriplet` reads, and their log-probabilities. `training.middleware` takes them from the reply;
`CallRecorder` sends what has gathered as one OTLP request, which the store numbers in the order of its spans.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp
import orjson
from agentlightning.semconv import LightningResourceAttributes
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from tenacity import AsyncRetrying, before_sleep_log, retry_if_exception_type, stop_after_delay, wait_random_exponential

from training.gate import CallGate
from training.seeds import RequestSeeds

logger = logging.getLogger(__name__)

SPAN_NAME = "raw_gen_ai_request"
VERSION_ATTRIBUTE = "policy.version"
LOG_PROBS_ATTRIBUTE = "policy.log_probs"
RESPONSE_ATTRIBUTE = "llm.hosted_vllm.id"
ASK_FOR_LOG_PROBS = {"logprobs": True, "top_logprobs": 0}  # of the sampled tokens only
GATHER_SECONDS = 0.005  # how long a finished call may wait for company; a request to the store costs about that much
OUTAGE_SECONDS = 60.0  # how long calls are kept for a store that does not answer


@dataclass(frozen=True)
class RecordedCall:
    """One answered call: token ids of prompt and reply, Unix times in seconds, and the weights that answered it.

    `log_probs` are those of the reply's tokens as vLLM sampled them; None where vLLM was not asked.
    """

    rollout_id: str
    attempt_id: str
    response_id: str
    prompt_ids: list[int]
    response_ids: list[int]
    started: float
    ended: float
    version: int
    log_probs: list[float] | None = None


class CallRecorder:
    """Gathers answered calls and sends them to the store's OTLP endpoint, in order. Lives on one event loop.

    Args:
        endpoint: URL of the store's OTLP traces endpoint.
        version: returns the number of the weights vLLM serves now; a call is stamped with it as it ends.
        gate: what a call passes; it keeps the weights as they are until the call is recorded.
        seeds: gives every call a seed; None leaves sampling to vLLM's own.
    """

    def __init__(
        self,
        endpoint: str,
        version: Callable[[], int],
        gate: CallGate | None = None,
        seeds: RequestSeeds | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.version = version
        self.gate = gate or CallGate()
        self.seeds = seeds
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
            _text(RESPONSE_ATTRIBUTE, call.response_id),
            _text("llm.hosted_vllm.prompt_token_ids", orjson.dumps(call.prompt_ids).decode()),
            _text("llm.hosted_vllm.response_token_ids", orjson.dumps([call.response_ids]).decode()),
            KeyValue(key=VERSION_ATTRIBUTE, value=AnyValue(int_value=call.version)),
        ]
    )
    if call.log_probs is not None:
        span.attributes.append(_text(LOG_PROBS_ATTRIBUTE, orjson.dumps(call.log_probs).decode()))
    return spans


def _text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))
