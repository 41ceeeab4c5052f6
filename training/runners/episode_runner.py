"""Play many episodes at once in one process, each as an asyncio task.

An episode ends at its deadline (`timeout`), when the store gave it to another runner (noticed at a
heartbeat, not reported), or at its own end. It is `unresponsive` if others are to take over.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from agentlightning import LitAgent, Runner
from agentlightning.emitter import emit_reward
from agentlightning.execution.events import ExecutionEvent
from agentlightning.store.base import is_finished
from agentlightning.tracer.base import clear_active_tracer, set_active_tracer
from agentlightning.tracer.dummy import DummyTracer
from agentlightning.types import AttemptedRollout, NamedResources, Rollout, SpanCoreFields

from training.store.store_client import StoreClient, give_up, worker_name

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 10.0
TAKEN_AT_ONCE = 8  # rollouts of one dequeue, so that a short queue is shared between the processes
GIVE_UP_SECONDS = 3.0
STOP_POLL_SECONDS = 0.2
LOST = ("timeout", "unresponsive", "failed")

_episode: ContextVar[list[SpanCoreFields]] = ContextVar("episode")


class EpisodeTracer(DummyTracer):
    """Keeps what agents emit apart by asyncio task, which begins with `begin`. The proxy's spans
    hold the token ids.

    Threads and tasks of an episode belong to it. Outside of any, emitting raises LookupError.
    """

    def begin(self) -> list[SpanCoreFields]:
        """Start an episode in the current task. The list fills as the agent emits."""
        spans: list[SpanCoreFields] = []
        _episode.set(spans)
        return spans

    def create_span(self, *args: Any, **named: Any) -> SpanCoreFields:
        span = super().create_span(*args, **named)
        _episode.get().append(span)
        return span


class Threads(ThreadPoolExecutor):
    """A thread for every blocking call: a hung one takes no slot, and nothing waits for it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except BaseException as error:
                    future.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing: its threads are daemons."""


@dataclass
class Slot:
    """An attempt that is played. If `over`, only its report is left."""

    rollout: AttemptedRollout
    taken_at: float = field(default_factory=time.monotonic)
    task: asyncio.Task[None] | None = None
    over: bool = False


class EpisodeRunner(Runner[Any]):
    """Plays up to `concurrency` episodes at once, none longer than `deadline` seconds."""

    def __init__(
        self, concurrency: int, deadline: float, heartbeat: float = HEARTBEAT_SECONDS
    ) -> None:
        super().__init__()
        self.concurrency = concurrency
        self.deadline = deadline
        self.heartbeat = heartbeat
        self.tracer = EpisodeTracer()

    def init(self, agent: LitAgent[Any], **kwargs: Any) -> None:
        """Bind the agent, whose rollouts are coroutines. Hooks are not called."""
        self.agent = agent
        agent.set_runner(self)

    def init_worker(self, worker_id: int, store: Any, **kwargs: Any) -> None:
        """Prepare this process. Its tracer assigns what is emitted to the episode that emits it."""
        self.store: StoreClient = store
        self.name = worker_name(os.getpid())
        set_active_tracer(self.tracer)

    def teardown_worker(self, worker_id: int, *args: Any, **kwargs: Any) -> None:
        clear_active_tracer()

    def teardown(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: workers hold nothing in common."""

    async def iter(self, *, event: ExecutionEvent | None = None) -> None:
        """Play until the event is set or this is cancelled, then give back what is unfinished.

        It never raises: agent-lightning would stop the other runners, too.
        """
        loop = asyncio.get_running_loop()
        loop.set_default_executor(Threads())
        # Connections of their own: slow spans would delay the heartbeats of other episodes
        self._spans = StoreClient(self.store.server_address_root, self.store.token)
        self._resources: dict[str, NamedResources] = {}
        self._slots: dict[str, Slot] = {}
        self._stray: set[asyncio.Task[Any]] = set()
        self._freed = asyncio.Event()
        work = [loop.create_task(self._take()), loop.create_task(self._beat())]
        try:
            # Polled, because a process that dies in `event.wait()` makes `set()` hang
            while event is None or not event.is_set():
                await asyncio.sleep(STOP_POLL_SECONDS)
        except asyncio.CancelledError:
            logger.info("%s is stopped", self.name)
        finally:
            for task in work:
                task.cancel()
            await self._close()

    async def _close(self) -> None:
        slots = [slot.task for slot in self._slots.values() if slot.task is not None]
        for task in slots:
            task.cancel()
        if slots:
            try:
                await asyncio.wait_for(give_up(self.store, self.name), GIVE_UP_SECONDS)
            # The store may be gone already. Otherwise its watchdog finds these rollouts
            except Exception as error:
                why = type(error).__name__
                logger.info("%s could not give back %d rollouts (%s)", self.name, len(slots), why)
        await self._spans.close()
        await self.store.close()

    async def _take(self) -> None:
        while True:
            try:
                free = self.concurrency - len(self._slots)
                if not free:
                    self._freed.clear()
                    await self._freed.wait()
                    continue
                rollouts = await self.store.dequeue_many_rollouts(
                    limit=min(free, TAKEN_AT_ONCE), worker_id=self.name
                )
                for rollout in rollouts:
                    self._start(rollout)
                if not rollouts:
                    await self.store.wait_queued()
            except Exception:
                logger.exception("%s could not take a rollout", self.name)
                await asyncio.sleep(1)

    def _start(self, rollout: AttemptedRollout) -> None:
        def leave(_: asyncio.Task[None]) -> None:
            self._slots.pop(rollout.attempt.attempt_id, None)
            self._freed.set()

        slot = self._slots[rollout.attempt.attempt_id] = Slot(rollout)
        slot.task = asyncio.get_running_loop().create_task(self._play(slot))
        slot.task.add_done_callback(leave)

    async def _play(self, slot: Slot) -> None:
        episode = asyncio.get_running_loop().create_task(self._episode(slot.rollout))
        try:
            await asyncio.wait({episode}, timeout=self.deadline)
        finally:
            # An agent may notice late or never, so it is not waited for
            if not episode.done():
                episode.cancel()
                self._stray.add(episode)
                episode.add_done_callback(self._stray.discard)
        slot.over = True
        try:
            await self._finish(slot.rollout, episode)
        except Exception:  # the store's watchdog will see that the attempt has no heartbeat
            name = slot.rollout.rollout_id
            logger.exception("%s: the result of rollout %s is lost", self.name, name)

    async def _episode(self, rollout: AttemptedRollout) -> list[SpanCoreFields]:
        spans = self.tracer.begin()
        named = str(rollout.resources_id)
        if named not in self._resources:
            update = await self.store.get_resources_by_id(named)
            if update is None:
                raise RuntimeError(f"the store has no resources {named}")
            self._resources[named] = update.resources
        kind = "training" if rollout.mode == "train" else "validation"
        play = getattr(self.agent, f"{kind}_rollout_async")
        result = await play(rollout.input, resources=self._resources[named], rollout=rollout)
        return spans if result is None else [*spans, emit_reward(float(result), propagate=False)]

    async def _finish(
        self, rollout: AttemptedRollout, episode: asyncio.Task[list[SpanCoreFields]]
    ) -> None:
        attempt = rollout.attempt.attempt_id
        if not episode.done() or episode.cancelled():
            logger.warning("rollout %s had no end after %g s", rollout.rollout_id, self.deadline)
            await self.store.update_attempt(rollout.rollout_id, attempt, status="timeout")
        elif error := episode.exception():
            logger.error("rollout %s failed", rollout.rollout_id, exc_info=error)
            await self.store.update_attempt(rollout.rollout_id, attempt, status="failed")
        else:
            spans = [(rollout.rollout_id, attempt, span) for span in episode.result()]
            await self._spans.send_spans(spans)
            await self.store.update_attempt(rollout.rollout_id, attempt, status="succeeded")

    async def _beat(self) -> None:
        """Report that this runner and its episodes live, and drop those that are no longer ours."""
        while True:
            await asyncio.sleep(self.heartbeat)
            try:
                await self.store.update_worker(self.name, {"episodes": len(self._slots)})
                slots = [slot for slot in self._slots.values() if not slot.over]
                names = [slot.rollout.rollout_id for slot in slots]
                known = await self.store.query_rollouts(rollout_id_in=names) if names else []
                now = {rollout.rollout_id: rollout for rollout in known}
                for slot in slots:
                    await self._beat_for(slot, now.get(slot.rollout.rollout_id))
            except Exception as error:
                why = type(error).__name__
                logger.warning("%s could not send a heartbeat (%s)", self.name, why)

    async def _beat_for(self, slot: Slot, found: Rollout | None) -> None:
        if slot.over:
            return
        name = slot.rollout.rollout_id
        attempt = slot.rollout.attempt.attempt_id
        ours = (
            isinstance(found, AttemptedRollout)
            and not is_finished(found)
            and found.attempt.attempt_id == attempt
            and found.attempt.status not in LOST
        )
        if ours:
            # By the store's clock, which may differ from this machine's
            now = slot.rollout.attempt.start_time + time.monotonic() - slot.taken_at
            await self.store.update_attempt(name, attempt, last_heartbeat_time=now)
        elif slot.task is not None:
            logger.warning("rollout %s is no longer this runner's", name)
            slot.task.cancel()
