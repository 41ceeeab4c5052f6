"""verl's rollout manager, backed by the LightningStore and the LLM proxy.

verl asks for sequences and is answered at once; a background loop enqueues the rollouts of the step in the store, waits
for the runners to finish them, turns their spans into sequences and puts those into verl's TransferQueue. Sequences of
a step reach the queue only when the whole step is judged (`training.watch`), so that a skipped step leaves nothing.
Lives in the trainer's Ray actor (`training.trainer`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

import transfer_queue as tq
from agentlightning import LightningStoreClient
from agentlightning.types import EnqueueRolloutRequest, Rollout, RolloutConfig
from omegaconf import DictConfig
from tensordict import NonTensorData, NonTensorStack, TensorDict

from training import sequences
from training.collect import Collector
from training.plan import Plan
from training.proxy import PolicyAccess
from training.records import RolloutRecord, leave_out_lone
from training.tracing import trace_adapter
from training.trajectories import Limits, Trajectory
from training.watch import RunStopped, Watch, silence_limit

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2
Prompt = dict[str, Any]
Finished = tuple[RolloutRecord, Trajectory]


class RolloutManager:
    """What verl calls an agent loop manager: `generate_sequences` is all verl needs of it."""

    def __init__(self, plan: Plan, config: DictConfig, servers: list[str]) -> None:
        self.plan = plan
        self.config = config
        rollout = config.actor_rollout_ref.rollout
        self.n_train, self.n_val = int(rollout.n), int(rollout.val_kwargs.n)
        self.store = LightningStoreClient(plan.store_address)
        self.policy = PolicyAccess(plan, config, servers, self.store)
        limits = Limits(prompt=config.data.max_prompt_length, response=config.data.max_response_length)
        self.collector = Collector(self.store, trace_adapter(plan), limits, plan.trajectory_level)
        self.watch = Watch(plan.max_unscored_share)
        self.step_records: list[RolloutRecord] = []
        self.delivered: list[RolloutRecord] = []
        self.books: dict[str, RolloutRecord] = {}
        self._failure: BaseException | None = None
        self._news = threading.Event()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="rollouts", daemon=True).start()
        self._run(self.policy.start()).result(timeout=120)

    def generate_sequences(self, prompts: TensorDict) -> None:
        """Start the rollouts of these prompts and return; `prompts` is verl's batch, one row a prompt group."""
        validate = bool(prompts["validate"]) if "validate" in prompts else False
        columns = {key: column for key, column in prompts.items() if key != "validate"}
        rows = [{key: _plain(column, i) for key, column in columns.items()} for i in range(len(prompts))]
        self._run(self._wave(rows, validate)).add_done_callback(self._note_failure)

    def wait_for_news(self, seconds: float) -> None:
        """Block until rollouts were delivered, at most so long.

        Raises:
            RunStopped: the background loop gave up; verl's waiting trainer must too.
        """
        self._news.wait(seconds)
        self._news.clear()
        if self._failure is not None:
            raise self._failure

    def take_step_records(self) -> list[RolloutRecord]:
        """Training rollouts delivered or skipped since the last call."""
        records, self.step_records, self.delivered = self.step_records, [], []
        return records

    def close(self) -> None:
        """Stop the proxy; rollouts still running are abandoned."""
        self._run(self.policy.stop()).result(timeout=30)
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _note_failure(self, future: Future[Any]) -> None:
        error = future.exception()
        if error is not None:
            self._failure = error
            self._news.set()

    async def _wave(self, rows: list[Prompt], validate: bool) -> None:
        """A step's rollouts, or those that replace its failed groups, from queue to TransferQueue."""
        partition = "val" if validate else "train"
        await asyncio.to_thread(_tag, [row["uid"] for row in rows], partition, "running")
        finished = await self._finish_all(await self._enqueue(rows, validate))
        records = [record for record, _ in finished]
        skip = self._judge(records, [] if validate else self.delivered)
        if skip:
            logger.warning("step skipped: %s", skip)
            await self.policy.check_engine()
            if validate:
                raise RunStopped(f"validation is worth nothing: {skip}. Mend the cause and resume with --resume.")
        if not validate:
            self.step_records.extend(records)
            self.delivered.extend([] if skip else records)
        await asyncio.to_thread(self._deliver, rows, [] if skip else finished, partition)
        self._news.set()

    def _judge(self, records: list[RolloutRecord], delivered: list[RolloutRecord]) -> str | None:
        """The watch's decision; the records are written whatever it is."""
        if records[0].mode == "train":
            leave_out_lone(records)
        skip = None
        try:
            skip = self.watch.judge(records, delivered)
        finally:
            for record in records:
                if skip and record.cause is None:
                    record.cause = "step_skipped"
            self._write(records)
        return skip

    async def _enqueue(self, rows: list[Prompt], validate: bool) -> dict[str, RolloutRecord]:
        """Queue n rollouts a prompt; returns their records by rollout id."""
        mode = "val" if validate else "train"
        keys = [(row, session) for row in rows for session in range(self.n_val if validate else self.n_train)]
        config = RolloutConfig(
            timeout_seconds=self.plan.episode_timeout + 60,
            max_attempts=2,
            retry_condition=["timeout", "unresponsive"],
        )
        requests = [
            EnqueueRolloutRequest(
                input=json.loads(row["task"]),
                mode=mode,
                resources_id=self.policy.resource(mode, number),
                config=config,
            )
            for number, (row, _) in enumerate(keys)
        ]
        queued = await self.store.enqueue_many_rollouts(requests)
        return {
            rollout.rollout_id: RolloutRecord(
                rollout_id=rollout.rollout_id,
                group=row["uid"],
                session=session,
                mode=mode,
                step=int(row["global_steps"]),
                status="queuing",
            )
            for (row, session), rollout in zip(keys, queued, strict=True)
        }

    async def _finish_all(self, records: dict[str, RolloutRecord]) -> list[Finished]:
        """Collect every rollout as it ends.

        Raises:
            RunStopped: nothing ended for longer than an episode may take.
        """
        waiting, finished = dict(records), []
        limit, last = silence_limit(self.plan.episode_timeout), time.monotonic()
        while waiting:
            done = await self._ended(list(waiting))
            if done:
                last = time.monotonic()
            elif time.monotonic() - last > limit:
                await self.policy.check_engine()
                raise RunStopped(
                    f"no rollout finished for {limit:.0f} s, {len(waiting)} are waiting. Are runners alive and "
                    f"connected to {self.plan.store_address}?"
                )
            for rollout in done:
                finished.append(await self.collector.collect(rollout, waiting.pop(rollout.rollout_id)))
            await asyncio.sleep(0 if done else POLL_SECONDS)
        return finished

    async def _ended(self, rollout_ids: list[str]) -> list[Rollout]:
        ended = await self.store.query_rollouts(
            rollout_id_in=rollout_ids, status_in=["succeeded", "failed", "cancelled"]
        )
        return list(ended)

    def _deliver(self, rows: list[Prompt], finished: list[Finished], partition: str) -> None:
        """Put the sequences of scored rollouts into the TransferQueue, then close their groups."""
        by_uid = {row["uid"]: row for row in rows}
        delivered: set[str] = set()
        for record, trajectory in finished:
            if record.cause is None:
                sequences.put(record, trajectory, by_uid[record.group], partition)
                self.books[record.key] = record
                delivered.add(record.group)
        _tag([uid for uid in by_uid if uid in delivered], partition, "finished")
        _tag([uid for uid in by_uid if uid not in delivered], partition, "failure")

    def _write(self, records: list[RolloutRecord]) -> None:
        with (self.plan.run_dir / "episodes.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(record.to_json() + "\n" for record in records)


def _tag(uids: list[str], partition: str, status: str) -> None:
    if uids:
        tq.kv_batch_put(keys=uids, partition_id=partition, tags=[{"status": status} for _ in uids])


def _plain(column: Any, index: int) -> Any:
    """Row `index` of a TensorDict column, without tensordict's wrappers."""
    if isinstance(column, NonTensorStack):
        return column[index].data
    return column.data if isinstance(column, NonTensorData) else column[index]
