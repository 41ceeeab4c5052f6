"""Write spans into the store, many with one request: the policy's calls and what agents emit.

agent-lightning's own tracing makes seven OpenTelemetry spans of every call and sends them one call
at a time, which costs more than the proxy itself. Training needs one, `raw_gen_ai_request`, which
`LlmProxyTraceToTriplet` reads.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import NamedTuple

import aiohttp
import orjson
from agentlightning.semconv import LightningResourceAttributes
from agentlightning.types import SpanCoreFields, TraceStatus
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanContext, Status, StatusCode
from tenacity import (
    AsyncRetrying,
    before_sleep_log,
    retry_if_exception_type,
    stop_after_delay,
    wait_random_exponential,
)

from common.access import bearer
from training.proxy.gate import CallGate, RequestSeeds

logger = logging.getLogger(__name__)

SPAN_NAME = "raw_gen_ai_request"
LOG_PROBS_ATTRIBUTE = "policy.log_probs"
RESPONSE_ATTRIBUTE = "llm.hosted_vllm.id"
ASK_FOR_LOG_PROBS = {"logprobs": True, "top_logprobs": 0}  # of the sampled tokens only
# Seconds to wait for a store that does not answer: less than the silence that stops a run
OUTAGE_SECONDS = 150.0
REQUEST_SECONDS = 30.0
# Connections of a client to its store. Further requests wait at the client: of a thousand new
# connections, when so many episodes end at once, the store would drop some
# (`common.connections.MOST_WAITING`).
STORE_CONNECTIONS = 8
PROTOBUF = {"content-type": "application/x-protobuf"}
# How long a finished call may wait for company. A request to the store costs about that much
GATHER_SECONDS = 0.005


Emitted = tuple[str, str, SpanCoreFields]  # rollout id, attempt id, span
_ids = RandomIdGenerator()


class Taken(NamedTuple):
    """A reply's id, token ids of prompt and reply, and the reply's log-probabilities, if any."""

    response_id: str
    prompt_ids: list[int]
    response_ids: list[int]
    log_probs: list[float] | None


def store_session(token: str | None) -> aiohttp.ClientSession:
    """Return a session for requests to a store: few connections, and the token, if there is one."""
    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
        headers=bearer(token),
        connector=aiohttp.TCPConnector(limit=STORE_CONNECTIONS),
    )


class SpanSender:
    """Send spans to a store by OTLP, again while it is away. Belongs to one event loop."""

    def __init__(self, token: str | None = None) -> None:
        self._token = token
        self._session: aiohttp.ClientSession | None = None

    async def send(self, endpoint: str, spans: Sequence[Emitted]) -> None:
        """Store these spans in this order. Raises ClientError, TimeoutError after OUTAGE_SECONDS."""
        if not spans:
            return
        if self._session is None:
            self._session = store_session(self._token)
        session = self._session
        body = bytes(encode_spans([_readable(*span) for span in spans]).SerializeToString())

        async def send_spans() -> None:
            async with session.post(endpoint, data=body, headers=PROTOBUF) as response:
                response.raise_for_status()

        retrying = AsyncRetrying(
            stop=stop_after_delay(OUTAGE_SECONDS),
            wait=wait_random_exponential(multiplier=0.2, max=5.0),
            retry=retry_if_exception_type((aiohttp.ClientError, TimeoutError)),
            before_sleep=before_sleep_log(logger, logging.WARNING),
            reraise=True,
        )
        await retrying(send_spans)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def _readable(rollout_id: str, attempt_id: str, span: SpanCoreFields) -> ReadableSpan:
    begin = span.start_time or 0.0
    names = LightningResourceAttributes
    owner = {names.ROLLOUT_ID.value: rollout_id, names.ATTEMPT_ID.value: attempt_id}
    return ReadableSpan(
        name=span.name,
        context=SpanContext(_ids.generate_trace_id(), _ids.generate_span_id(), is_remote=False),
        resource=Resource(owner),
        attributes=span.attributes,
        start_time=int(begin * 1e9),
        end_time=int((span.end_time or begin) * 1e9),
        status=Status(StatusCode[span.status.status_code], span.status.description),
    )


class CallRecorder:
    """Gather answered calls and send them to the store, in order, on one event loop.

    seeds: None for vLLM's own sampling.
    """

    def __init__(
        self,
        endpoint: str,
        gate: CallGate | None = None,
        seeds: RequestSeeds | None = None,
        token: str | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.gate = gate or CallGate()
        self.seeds = seeds
        self.lost = 0
        self._waiting: list[Emitted] = []
        self._sender = SpanSender(token)
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def record(self, rollout_id: str, attempt_id: str, taken: Taken, started: float) -> None:
        """Queue a call from `started` (Unix seconds) until now."""
        # Lists as text, as litellm's tracing writes them: a protobuf list of numbers takes the store
        # far longer to read.
        attributes = {
            RESPONSE_ATTRIBUTE: taken.response_id,
            "llm.hosted_vllm.prompt_token_ids": orjson.dumps(taken.prompt_ids).decode(),
            "llm.hosted_vllm.response_token_ids": orjson.dumps([taken.response_ids]).decode(),
        }
        if taken.log_probs is not None:
            attributes[LOG_PROBS_ATTRIBUTE] = orjson.dumps(taken.log_probs).decode()
        span = SpanCoreFields(
            name=SPAN_NAME,
            status=TraceStatus(status_code="OK"),
            attributes=attributes,
            start_time=started,
            end_time=time.time(),
        )
        self._waiting.append((rollout_id, attempt_id, span))
        self._news.set()
        if self._task is None:
            self._task = asyncio.create_task(self._send_forever())

    async def close(self) -> None:
        """Send what is left. Return at once if nothing was ever recorded."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self._send_waiting()
            await self._sender.close()

    async def _send_forever(self) -> None:
        while True:
            await self._news.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._news.clear()
            await self._send_waiting()

    async def _send_waiting(self) -> None:
        """Send all that waits. What a dead store did not take is lost and counted."""
        calls = self._waiting
        self._waiting = []
        try:
            await self._sender.send(self.endpoint, calls)
        except (aiohttp.ClientError, TimeoutError) as error:
            self.lost += len(calls)
            logger.error("%d calls could not be written to the store: %s", len(calls), error)
        except asyncio.CancelledError:
            self._waiting = calls + self._waiting
            raise
