"""verl's rollout manager, backed by the LightningStore and the LLM proxy.

verl is answered at once. A background loop enqueues a step's rollouts and collects what ended. It
puts sequences into the TransferQueue once the whole step is judged.
"""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from typing import Any

import transfer_queue as tq
from agentlightning.types import EnqueueRolloutRequest
from omegaconf import DictConfig
from tensordict import TensorDict

from training.engine.batch import put_sequences
from training.engine.collect import Collector
from training.engine.kept_sample import Decode, Finished, keep, sample_of
from training.engine.playing import Playing
from training.engine.records import RolloutRecord, leave_out_lone
from training.engine.trajectories import Limits
from training.engine.watchdog import Watch, learnable_groups, silence_limit
from training.proxy.policy_access import PolicyAccess
from training.setup.agreement import compares_groups
from training.setup.plan import Plan, RunStopped
from training.setup.presets import ROLLOUT
from training.store.store_client import StoreClient, rules_of

logger = logging.getLogger(__name__)

Prompt = dict[str, Any]

MOST_BATCHES = 20  # of tasks that one step draws where groups of equal reward are replaced
GATHER_SECONDS = 0.01  # between two requests for endings, so that many endings make few requests


class RolloutManager:
    """verl's agent loop manager. `kept_steps` are the steps that have their sample."""

    def __init__(self, plan: Plan, config: DictConfig, servers: list[str], decode: Decode) -> None:
        self.plan = plan
        self.decode = decode
        self.kept_steps: set[int] = set()
        self.config = config
        rollout = config.actor_rollout_ref.rollout
        self.n_train = int(rollout.n)
        self.n_val = int(rollout.val_kwargs.n)
        self.compared = compares_groups(config)
        self.store = StoreClient(plan.store.address, plan.store.token)
        self.policy = PolicyAccess(plan, config, servers, self.store)
        limits = Limits(config.data.max_prompt_length, config.data.max_response_length)
        self.collector = Collector(self.store, limits, plan.engine.trajectory_level)
        step_size = int(config.data.train_batch_size) * self.n_train
        self.watch = Watch(step_size, plan.engine.max_unscored_share)
        self.playing = Playing(plan.output.run_dir)
        self.step_records: list[RolloutRecord] = []
        self.drawn = 0  # tasks since the last update, where equal groups are replaced
        self.validation_records: list[RolloutRecord] = []
        self.delivered: dict[str, RolloutRecord] = {}
        self._failure: BaseException | None = None
        self._news = threading.Event()
        # Unix seconds, by the store's clock, at which the last collected rollout ended
        self.last_end = 0.0
        self._last_ending = 0  # its number in the store
        self._turn = asyncio.Lock()  # each ending is handed out once, so one wave plays at a time
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="rollouts", daemon=True).start()
        self._run(self.policy.start()).result(timeout=120)

    def generate_sequences(self, prompts: TensorDict) -> None:
        """Start the rollouts of verl's batch, one row a prompt group, and return."""
        validate = bool(prompts["validate"]) if "validate" in prompts else False
        rows = [row.to_dict() for row in prompts.unbind(0)]
        for row in rows:
            row.pop("validate", None)
        if not validate:
            self._count(len(rows))
        self._run(self._wave(rows, validate)).add_done_callback(self._note_failure)

    def wait_for_news(self, seconds: float) -> None:
        """Block until rollouts were delivered, at most so long. Raise what ended the loop."""
        self._news.wait(seconds)
        self._news.clear()
        if self._failure is not None:
            raise self._failure

    def take_step_records(self) -> list[RolloutRecord]:
        """Return the training rollouts delivered or skipped since the last call."""
        records = self.step_records
        self.step_records = []
        self.drawn = 0
        self.watch.note_update()
        return records

    def take_trained_records(self, sessions: Iterable[str]) -> list[RolloutRecord]:
        """Return the records an update trains on. Drop those over verl's bound of age."""
        taken = [self.delivered.pop(session) for session in sessions]
        bound = int(self.config.trainer.v1.sampler.max_off_policy_threshold)
        oldest = max(record.step for record in taken) - bound
        for key, record in [*self.delivered.items()]:
            if record.step <= oldest:
                del self.delivered[key]
        return taken

    def close(self) -> None:
        """Stop the proxy. Rollouts still running are abandoned."""

        async def end() -> None:
            await self.policy.stop()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await self.store.close()

        self._run(end()).result(timeout=120)
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _count(self, tasks: int) -> None:
        """Count a step's tasks. Raises RunStopped: verl would replace groups without an end."""
        groups = self.config.algorithm.get("filter_groups") or {"enable": False}
        if not groups["enable"]:
            return
        batch = int(self.config.data.train_batch_size)
        given = int(groups["max_num_gen_batches"])
        most = given if given > 0 else MOST_BATCHES
        if self.drawn + tasks > most * batch:
            raise RunStopped(
                f"algorithm.filter_groups: rewards differ in {learnable_groups(self.step_records)} "
                f"of {self.drawn} groups that were played for one step, which needs {batch}. Take "
                f"easier or harder tasks, more episodes of each ({ROLLOUT}.n), or more than {most} "
                "batches a step (algorithm.filter_groups.max_num_gen_batches)."
            )
        self.drawn += tasks

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _note_failure(self, future: Future[Any]) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self._failure = error
            self._news.set()

    async def _wave(self, rows: list[Prompt], validate: bool) -> None:
        partition = "val" if validate else "train"
        await asyncio.to_thread(_tag, [row["uid"] for row in rows], partition, "running")
        async with self._turn:
            finished = await self._finish_all(await self._enqueue(rows, validate))
            skip = self._judge(finished, validate)
            if skip:
                logger.warning("skipped: %s", skip)
                await self.policy.check_engine()
                if validate:
                    raise RunStopped(
                        f"validation is worth nothing: {skip}. Mend the cause and resume with "
                        "--resume."
                    )
                await asyncio.sleep(self.watch.pause)
            played = self.validation_records if validate else self.step_records
            played.extend(record for record, _ in finished)
            await asyncio.to_thread(self._deliver, rows, finished, partition)
        self._news.set()

    def _judge(self, finished: list[Finished], validate: bool) -> str | None:
        """Return the watch's decision. The records are written whatever it is."""
        records = [record for record, _ in finished]
        if self.compared and not validate:
            leave_out_lone(records)
        skip = None
        try:
            skip = self.watch.judge(records, validate)
        finally:
            for record in records:
                if skip and record.cause is None:
                    record.cause = "step_skipped"
            step = finished[0][0].step
            sample = sample_of(finished) if validate or step not in self.kept_steps else []
            keep(finished, sample, None if validate else self.decode)
            if not validate and sample:
                self.kept_steps.add(step)
            with (self.plan.output.run_dir / "episodes.jsonl").open("a", encoding="utf-8") as file:
                file.writelines(record.to_json() + "\n" for record in records)
        return skip

    async def _enqueue(self, rows: list[Prompt], validate: bool) -> dict[str, RolloutRecord]:
        mode = "val" if validate else "train"
        sessions = range(self.n_val if validate else self.n_train)
        rules = rules_of(self.plan.engine.episode_timeout)
        requests = []
        records = []
        for number, row in enumerate(rows):
            request = EnqueueRolloutRequest(
                input=json.loads(row["task"]),
                mode=mode,
                resources_id=self.policy.resource(mode, number),
                config=rules,
            )
            for session in sessions:
                record = RolloutRecord(
                    group=row["uid"],
                    sample=session,
                    mode=mode,
                    step=int(row["global_steps"]),
                    task_type=str(row["data_source"]),
                    agent=row.get("agent") or None,
                    index=int(row["index"]),
                )
                requests.append(request)
                records.append(record)
        queued = await self.store.enqueue_many_rollouts(requests)
        self.playing.begin(mode, records[0].step, len(records))
        for record, rollout in zip(records, queued, strict=True):
            record.rollout_id = rollout.rollout_id
        return {record.rollout_id: record for record in records}

    async def _finish_all(self, records: dict[str, RolloutRecord]) -> list[Finished]:
        """Collect every rollout as it ends. Raises RunStopped: nothing ended for too long."""
        waiting = dict(records)
        collecting: dict[str, asyncio.Task[Finished]] = {}
        limit = silence_limit(self.plan.engine.episode_timeout)
        heard = time.monotonic()
        try:
            while waiting:
                self._last_ending, ended = await self.store.wait_ended(self._last_ending)
                for rollout in ended:
                    record = waiting.pop(rollout.rollout_id, None)
                    if record is not None:
                        heard = time.monotonic()
                        self.last_end = max(self.last_end, rollout.end_time or 0.0)
                        self.playing.end()
                        task = asyncio.create_task(self.collector.collect(rollout, record))
                        collecting[rollout.rollout_id] = task
                for task in collecting.values():
                    if task.done():
                        task.result()  # raises what went wrong
                # A slow policy whose calls still end does not count as silent.
                if time.monotonic() - max(heard, self.policy.gate.left) >= limit:
                    await self.policy.check_engine()
                    raise RunStopped(
                        "no rollout and no call of the policy finished for "
                        f"{limit:.0f} s, {len(waiting)} are waiting. Are runners "
                        f"alive and connected to {self.plan.store.address}?"
                    )
                await asyncio.sleep(GATHER_SECONDS)
            return [await collecting[name] for name in records]
        finally:
            for task in collecting.values():
                task.cancel()

    def _deliver(self, rows: list[Prompt], finished: list[Finished], partition: str) -> None:
        """Put the sequences of scored rollouts into the TransferQueue, then close their groups."""
        by_uid = {row["uid"]: row for row in rows}
        scored = [pair for pair in finished if pair[0].cause is None]
        put_sequences(scored, by_uid, partition)
        self.delivered.update({record.key: record for record, _ in scored})
        delivered = {record.group for record, _ in scored}
        _tag([uid for uid in by_uid if uid in delivered], partition, "finished")
        _tag([uid for uid in by_uid if uid not in delivered], partition, "failure")


def _tag(uids: list[str], partition: str, status: str) -> None:
    if uids:
        tq.kv_batch_put(keys=uids, partition_id=partition, tags=[{"status": status} for _ in uids])
