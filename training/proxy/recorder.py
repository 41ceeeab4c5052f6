"""Write the policy's calls into the store as spans, many with one request.

agent-lightning's own tracing makes seven OpenTelemetry spans of every call and sends them one call
at a time, which costs more than the proxy itself. Training needs one, `raw_gen_ai_request`, which
`LlmProxyTraceToTriplet` reads.
"""

import asyncio
import logging
import time
from typing import NamedTuple

import aiohttp
import orjson
from agentlightning.types import SpanCoreFields, TraceStatus

from training.store.store_client import Emitted, StoreClient

logger = logging.getLogger(__name__)

SPAN_NAME = "raw_gen_ai_request"
LOG_PROBS_ATTRIBUTE = "policy.log_probs"
RESPONSE_ATTRIBUTE = "llm.hosted_vllm.id"
ASK_FOR_LOG_PROBS = {"logprobs": True, "top_logprobs": 0}  # of the sampled tokens only
# How long a finished call may wait for company. A request to the store costs about that much
GATHER_SECONDS = 0.005


class Taken(NamedTuple):
    """A reply's id, token ids of prompt and reply, and the reply's log-probabilities, if any."""

    response_id: str
    prompt_ids: list[int]
    response_ids: list[int]
    log_probs: list[float] | None


class CallRecorder:
    """Gather answered calls and send them to the store, in order, on one event loop."""

    def __init__(self, store: StoreClient) -> None:
        self.store = store
        self.lost = 0
        self._waiting: list[Emitted] = []
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
            await self.store.close()

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
            await self.store.send_spans(calls)
        except (aiohttp.ClientError, TimeoutError) as error:
            self.lost += len(calls)
            logger.error("%d calls could not be written to the store: %s", len(calls), error)
        except asyncio.CancelledError:
            self._waiting = calls + self._waiting
            raise
