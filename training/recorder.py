"""Writes the policy's calls into the store: one span a call, many calls a request.

agent-lightning's own tracing makes seven OpenTelemetry spans of every call the LLM proxy answers and sends them one
call at a time, which costs more than the proxy itself. Training needs one: `raw_gen_ai_request` with the token ids,
which `LlmProxyTraceToTriplet` reads, and their log-probabilities. `training.middleware` takes them from the reply;
`CallRecorder` sends what has gathered as one OTLP request, which the store numbers in the order of its spans.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp
import orjson
from agentlightning.types import SpanCoreFields, TraceStatus

from training.gate import CallGate
from training.otlp import SpanSender
from training.seeds import RequestSeeds

logger = logging.getLogger(__name__)

SPAN_NAME = "raw_gen_ai_request"
VERSION_ATTRIBUTE = "policy.version"
LOG_PROBS_ATTRIBUTE = "policy.log_probs"
RESPONSE_ATTRIBUTE = "llm.hosted_vllm.id"
ASK_FOR_LOG_PROBS = {"logprobs": True, "top_logprobs": 0}  # of the sampled tokens only
GATHER_SECONDS = 0.005  # how long a finished call may wait for company; a request to the store costs about that much


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
        self.lost = 0
        self._waiting: list[RecordedCall] = []
        self._sender = SpanSender()
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def record(self, call: RecordedCall) -> None:
        """Queue a call; it is in the store some milliseconds later."""
        self._waiting.append(call)
        self._news.set()
        if self._task is None:
            self._task = asyncio.create_task(self._send_forever())

    async def close(self) -> None:
        """Send what is left; returns at once when nothing was ever recorded."""
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
        """Send all that waits; calls a dead store did not take are lost, counted and missed by the collector."""
        calls, self._waiting = self._waiting, []
        try:
            await self._sender.send(self.endpoint, [(call.rollout_id, call.attempt_id, _span(call)) for call in calls])
        except (aiohttp.ClientError, TimeoutError) as error:
            self.lost += len(calls)
            logger.error("%d calls could not be written to the store: %s", len(calls), error)
        except asyncio.CancelledError:
            self._waiting = calls + self._waiting
            raise


def _span(call: RecordedCall) -> SpanCoreFields:
    # Lists as text, as litellm's tracing writes them: a protobuf list of numbers takes the store far longer to read.
    attributes = {
        RESPONSE_ATTRIBUTE: call.response_id,
        "llm.hosted_vllm.prompt_token_ids": orjson.dumps(call.prompt_ids).decode(),
        "llm.hosted_vllm.response_token_ids": orjson.dumps([call.response_ids]).decode(),
        VERSION_ATTRIBUTE: call.version,
    }
    if call.log_probs is not None:
        attributes[LOG_PROBS_ATTRIBUTE] = orjson.dumps(call.log_probs).decode()
    return SpanCoreFields(
        name=SPAN_NAME,
        status=TraceStatus(status_code="OK"),
        attributes=attributes,
        start_time=call.started,
        end_time=call.ended,
    )
