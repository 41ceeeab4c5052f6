"""The LightningStore of a run: agent-lightning's, which also says when something happened.

Two more requests wait on the server's side until there is news, and change nothing:
  POST /v1/agl/waits/queue {"seconds": 5}              -> {"queued": 3}
  POST /v1/agl/waits/ended {"after": 17, "seconds": 5} -> {"last": 18, "rollouts": [...]}
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
from agentlightning import InMemoryLightningStore, LightningStoreServer
from agentlightning.store.base import is_finished, is_queuing
from agentlightning.types import Rollout, Span
from fastapi import APIRouter, Body

from common.access import Guard
from common.connections import bound_launcher
from training.setup.plan import StorePlan
from training.setup.ports import require_free
from training.store.store_checks import HEALTH_PATH, WAITS
from training.store.store_client import OUTAGE_SECONDS

# Bytes of a request: the rollouts of a step, or the spans that gathered while the store was away
MOST_BYTES = 256 * 2**20
LONGEST_WAIT = 20.0
# After the longest outage that clients wait for, and their next question
RELEASE_SECONDS = OUTAGE_SECONDS + LONGEST_WAIT
LOOK_SECONDS = 0.5  # between two looks whether the store is about to end


class RunStore(InMemoryLightningStore):
    """Number endings, wake those who wait, and forget rollouts RELEASE_SECONDS after their end.

    Lives on its server's event loop. Only `closing` may be set from elsewhere.
    """

    def __init__(self) -> None:
        super().__init__(thread_safe=True)
        self.news = asyncio.Event()  # another one after each news
        # Number, Unix seconds, rollout id
        self.ended: deque[tuple[int, float, str]] = deque()
        self.last_ending = 0
        self.closing = False  # all waiting requests are answered, and later ones at once

    async def _post_update_rollout(
        self, rollouts: Sequence[tuple[Rollout, Sequence[str]]], skip_enqueue: bool = False
    ) -> None:
        await super()._post_update_rollout(rollouts, skip_enqueue=skip_enqueue)
        changed = [rollout for rollout, fields in rollouts if "status" in fields]
        for rollout in changed:
            if is_finished(rollout):
                self.last_ending += 1
                self.ended.append((self.last_ending, time.time(), rollout.rollout_id))
        if any(is_finished(rollout) or is_queuing(rollout) for rollout in changed):
            self.news.set()
            self.news = asyncio.Event()
        oldest = time.time() - RELEASE_SECONDS
        while self.ended and self.ended[0][1] < oldest:
            await self._forget(self.ended.popleft()[2])

    async def wait_queued(self, seconds: float) -> int:
        """Return the size of the queue, as soon as there are rollouts or after `seconds`."""
        return await self._wait(self.collections.rollout_queue.size, seconds)

    async def wait_ended(self, after: int, seconds: float) -> tuple[int, list[Rollout]]:
        """Return the last ending's number and what ended after `after`, at once if any did."""

        async def newer() -> list[tuple[int, str]]:
            found = []
            for number, _, rollout_id in reversed(self.ended):
                if number <= after:
                    break
                found.append((number, rollout_id))
            return found[::-1]

        endings = await self._wait(newer, seconds)
        found = [await self.get_rollout_by_id(rollout_id) for _, rollout_id in endings]
        last = endings[-1][0] if endings else after
        return last, [rollout for rollout in found if rollout is not None]

    async def _wait(self, ask: Callable[[], Awaitable[Any]], seconds: float) -> Any:
        end = time.monotonic() + min(seconds, LONGEST_WAIT)
        while True:
            news = self.news
            found = await ask()
            left = end - time.monotonic()
            if found or self.closing or left <= 0:
                return found
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), min(left, LOOK_SECONDS))

    async def add_many_spans(self, spans: Sequence[Span]) -> Sequence[Span]:
        """Add the spans of known attempts. A late call does not keep the others out."""
        attempts = self.collections.attempts._items
        known = [span for span in spans if span.attempt_id in attempts.get(span.rollout_id, ())]
        return await super().add_many_spans(known)

    async def _forget(self, rollout_id: str) -> None:
        """Remove all there is of a rollout. Agent-lightning 0.3 offers no request for it."""
        key: Any = {"rollout_id": {"exact": rollout_id}}
        labels: Any = ["rollouts", "attempts", "spans", "span_sequence_ids"]
        async with self.collections.atomic(labels=labels) as collections:
            for collection in (collections.spans, collections.attempts, collections.rollouts):
                await collection.delete(list((await collection.query(key)).items))
                # The emptied branch of the collection's tree
                collection._items.pop(rollout_id, None)
            await collections.span_sequence_ids.pop(rollout_id)
        self._total_span_bytes -= self._span_bytes_by_rollout.pop(rollout_id, 0)
        self._start_time_by_rollout.pop(rollout_id, None)
        self._completion_events.pop(rollout_id, None)


def make_server(
    store: RunStore, host: str, port: int, launch_mode: Any, token: str | None = None
) -> LightningStoreServer:
    """Return agent-lightning's server for this store behind the token."""
    server = LightningStoreServer(store, host=host, port=port, launch_mode=launch_mode)
    assert server.app is not None
    server.app.user_middleware.clear()  # they cost more than the requests, and show tracebacks
    routes = APIRouter(prefix=WAITS)

    @routes.post("/queue")
    async def queue(seconds: float = Body(embed=True)) -> dict[str, int]:
        return {"queued": await store.wait_queued(seconds)}

    @routes.post("/ended")
    async def ended(after: int = Body(), seconds: float = Body()) -> dict[str, Any]:
        last, rollouts = await store.wait_ended(after, seconds)
        return {"last": last, "rollouts": [rollout.model_dump(mode="json") for rollout in rollouts]}

    server.app.include_router(routes)
    guarded: Any = Guard(server.app, token, MOST_BYTES, free=[HEALTH_PATH], problem=not_json)
    server.server_launcher.app = guarded
    bound_launcher(server.server_launcher)
    return server


def not_json(path: str, body: bytes) -> str | None:
    """Return what is wrong with a body: NaN or half characters, which no answer can hold."""
    try:
        if body and path.startswith("/v1/agl"):
            orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return f"the body is no JSON: {error}"
    return None


@asynccontextmanager
async def serving(place: StorePlan) -> AsyncIterator[None]:
    """Serve the run's own store in the block, if it is not external."""
    if place.external_address:
        yield
        return
    require_free(place.host, place.port, "AGL_SERVER_PORT")  # another run may have begun meanwhile
    store = RunStore()
    server = make_server(store, place.host, place.port, "thread", place.token)
    await server.start()
    try:
        yield
    finally:
        store.closing = True
        await server.stop()
