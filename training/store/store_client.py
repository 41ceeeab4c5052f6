"""agent-lightning's client of the store, with the token, and patient with a slow network.

Runners and trainer learn of news by requests that stay open.
"""

import asyncio
import contextlib
import logging
import platform
import uuid
from collections.abc import Sequence
from typing import Any

import aiohttp
from agentlightning import LightningStore, LightningStoreClient
from agentlightning.semconv import LightningResourceAttributes
from agentlightning.types import (
    AttemptedRollout,
    EnqueueRolloutRequest,
    Rollout,
    RolloutConfig,
    SpanCoreFields,
)
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
from training.store.store_checks import WAITS

logger = logging.getLogger(__name__)

# Seconds to wait for a store that does not answer: less than the silence that stops a run
OUTAGE_SECONDS = 150.0
REQUEST_SECONDS = 30.0
# Connections of a client to its store. Further requests wait at the client: of a thousand new
# connections, when so many episodes end at once, the store would drop some
# (`common.connections.MOST_WAITING`).
STORE_CONNECTIONS = 8
PROTOBUF = {"content-type": "application/x-protobuf"}
WAIT_SECONDS = 5.0
UNREACHABLE_SECONDS = 0.5
# Above the longest limit of an episode: runners end it earlier, at their own deadline.
STORE_MARGIN_SECONDS = 60.0
UNRESPONSIVE_SECONDS = 60.0
MAX_ATTEMPTS = 3
LOOK_SECONDS = 0.5  # between two looks whether the store is there again
# Soon at first: every episode waits for some of its store's answers
RETRY_SECONDS = (0.1, 0.3, 1.0, 3.0, 5.0)
MARK = "batch"  # of a rollout's metadata: with which others it was queued

Emitted = tuple[str, str, SpanCoreFields]  # rollout id, attempt id, span
_ids = RandomIdGenerator()


class StoreClient(LightningStoreClient):
    """A client whose every request carries the token, which travels with it."""

    def __init__(
        self, address: str, token: str | None = None, retries: Sequence[float] = RETRY_SECONDS
    ) -> None:
        looks = int(OUTAGE_SECONDS / LOOK_SECONDS)
        super().__init__(address, retry_delays=retries, health_retry_delays=(LOOK_SECONDS,) * looks)
        self.token = token

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "token": self.token}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.token = state["token"]

    async def _get_session(self) -> aiohttp.ClientSession:
        loop = id(asyncio.get_running_loop())
        with self._lock:
            session = self._sessions.get(loop)
            if session is None or session.closed:
                session = aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
                    headers=bearer(self.token),
                    connector=aiohttp.TCPConnector(limit=STORE_CONNECTIONS),
                )
                self._sessions[loop] = session
        return session

    async def enqueue_many_rollouts(
        self, rollouts: Sequence[EnqueueRolloutRequest]
    ) -> Sequence[Rollout]:
        """Send it once: where the answer is lost, ask what was taken before sending again."""
        mark = uuid.uuid4().hex
        marked = []
        for one in rollouts:
            metadata = {**(one.metadata or {}), MARK: mark}
            marked.append(one.model_copy(update={"metadata": metadata}))
        once = LightningStoreClient.enqueue_many_rollouts
        client = StoreClient(self.server_address_root, self.token, retries=())
        try:
            return await once(client, marked)
        except (aiohttp.ClientError, TimeoutError):
            known = await self.query_rollouts()
            taken = [rollout for rollout in known if (rollout.metadata or {}).get(MARK) == mark]
            return taken or await once(self, marked)
        finally:
            await client.close()

    async def send_spans(self, spans: Sequence[Emitted]) -> None:
        """Store these spans in this order, again while the store is away. Raises ClientError,
        TimeoutError after OUTAGE_SECONDS.
        """
        if not spans:
            return
        session = await self._get_session()
        body = bytes(encode_spans([_readable(*span) for span in spans]).SerializeToString())

        async def send() -> None:
            url = self.otlp_traces_endpoint()
            async with session.post(url, data=body, headers=PROTOBUF) as response:
                response.raise_for_status()

        retrying = AsyncRetrying(
            stop=stop_after_delay(OUTAGE_SECONDS),
            wait=wait_random_exponential(multiplier=0.2, max=5.0),
            retry=retry_if_exception_type((aiohttp.ClientError, TimeoutError)),
            before_sleep=before_sleep_log(logger, logging.WARNING),
            reraise=True,
        )
        await retrying(send)

    async def wait_queued(self) -> None:
        """Return when a rollout waits in the queue, at the latest after WAIT_SECONDS."""
        await self._wait("queue", {"seconds": WAIT_SECONDS})

    async def wait_ended(self, after: int) -> tuple[int, list[Rollout]]:
        """Return the last ending's number, and what ended after `after` with its latest attempt,
        nothing after WAIT_SECONDS.
        """
        answer = await self._wait("ended", {"after": after, "seconds": WAIT_SECONDS})
        if answer is None:
            return after, []
        found: list[Rollout] = []
        for rollout in answer["rollouts"]:
            # One that was cancelled in the queue has no attempt
            kind = AttemptedRollout if "attempt" in rollout else Rollout
            found.append(kind.model_validate(rollout))
        return answer["last"], found

    async def _wait(self, what: str, body: dict[str, Any]) -> dict[str, Any] | None:
        session = await self._get_session()
        url = f"{self.server_address_root}{WAITS}/{what}"
        try:
            async with session.post(url, json=body) as response:
                response.raise_for_status()
                return dict(await response.json())
        except (aiohttp.ClientError, TimeoutError) as error:
            logger.info("the store does not answer at %s (%s)", url, type(error).__name__)
            await asyncio.sleep(UNREACHABLE_SECONDS)
            return None


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


def rules_of(episode_timeout: float) -> RolloutConfig:
    """Return when the store has a rollout of this run played again."""
    return RolloutConfig(
        timeout_seconds=episode_timeout + STORE_MARGIN_SECONDS,
        unresponsive_seconds=UNRESPONSIVE_SECONDS,
        max_attempts=MAX_ATTEMPTS,
        retry_condition=["timeout", "unresponsive"],
    )


def worker_name(pid: int) -> str:
    """Return the name in the store of a runner process on this machine."""
    return f"runner-{platform.node()}-{pid}"


async def give_up(store: LightningStore, worker: str) -> None:
    """Mark a worker's rollouts unresponsive, so that others play them."""
    for rollout in await store.query_rollouts(status_in=["preparing", "running"]):
        if not isinstance(rollout, AttemptedRollout) or rollout.attempt.worker_id != worker:
            continue
        attempt = rollout.attempt.attempt_id
        with contextlib.suppress(ValueError):  # it ended meanwhile, and was released
            await store.update_attempt(rollout.rollout_id, attempt, status="unresponsive")
