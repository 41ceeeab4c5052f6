"""verl's V1 trainer with rollouts from the LightningStore. The loop, losses and checkpoints are verl's."""

import json
import logging
import math
import os
import shutil
import time
from pathlib import Path
from typing import Any

import transfer_queue as tq
from omegaconf import DictConfig, OmegaConf
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils import tracking

from common.jsonl import write_text
from training.engine.checkpoints import PREFIX, STEP_METRICS, prune, saving, split_adapter
from training.engine.records import VALIDATION, rewards_by_group, step_metrics, validation_of
from training.engine.rollout_manager import RolloutManager
from training.engine.updates import (
    before_update,
    optimizer_steps,
    required_multiple,
    shared_out,
    updates_per_epoch,
)
from training.engine.watchdog import (
    DIFFER,
    check_advantages,
    check_episodes,
    learnable_groups,
    session_of,
)
from training.report.summary import read_timeline
from training.setup.agreement import compares_groups
from training.setup.chat_template import SETTING, TEMPLATE
from training.setup.plan import Plan, RunStopped

logger = logging.getLogger(__name__)

WAKE_SECONDS = 1.0
# verl's metrics of the correction. Those of the loss (`bypass_mode`) begin with actor/
CORRECTION = "rollout_corr/"


class LightningTrainer(PPOTrainerSync):
    """Rollouts from the store, each played by the weights it is trained on, and their records."""

    agent_loop_manager: RolloutManager

    def _build_replay_buffer(self) -> Any:
        """Return verl's replay buffer, woken by the manager instead of sleeping 2 s."""
        buffer = super()._build_replay_buffer()

        def wait(partition_id: str, last_debug_time: float) -> float:
            self.agent_loop_manager.wait_for_news(WAKE_SECONDS)
            return last_debug_time

        buffer._wait_for_next_poll = wait
        return buffer

    def on_step_begin(self) -> None:
        note_time(self.agent_loop_manager.plan.output.run_dir, "first_step")
        self.step_begin = time.time()
        super().on_step_begin()

    def on_sample_end(self) -> None:
        """Hold calls back before vLLM sleeps: one that comes late would wait for its wake."""
        manager = self.agent_loop_manager
        self.timing_raw["end_to_update"] = time.time() - manager.last_end
        manager.policy.gate.close(manager.plan.engine.episode_timeout)
        super().on_sample_end()

    def on_step_end(self) -> None:
        """Let verl give vLLM the new weights while calls are held back."""
        with self.agent_loop_manager.policy.changing_weights(self.global_steps):
            super().on_step_end()

    def _validate(self) -> dict[str, float]:
        """Return verl's metrics, which of several episodes a task have more than means, and ours."""
        metrics: dict[str, float] = super()._validate()
        manager = self.agent_loop_manager
        mean = validation_of(manager.validation_records)["mean"]
        manager.validation_records = []
        return metrics if mean is None else {**metrics, VALIDATION: mean}

    def _update_actor(self, batch: KVBatchMeta, metrics: dict) -> KVBatchMeta:
        """Update the actor, unless no group teaches: momentum would move the weights."""
        metrics.update(self._account(batch))
        self.step_metrics = metrics
        if metrics.get("books/learnable_groups") == 0:
            logger.warning("step %d: no group with different rewards, no update", self.global_steps)
            metrics |= {"books/generated_tokens": 0, "books/trained_tokens": 0}
            return batch
        updates = updates_per_epoch(self.config)
        with shared_out(self.actor_rollout_wg, "update_actor", updates) as answers:
            batch = super()._update_actor(batch, metrics)
        metrics["books/weight_updates"] = optimizer_steps(answers)
        for name, value in before_update(answers, CORRECTION).items():
            del metrics[f"actor/{name}"]
            metrics[name] = value
        dtype = self.config.actor_rollout_ref.rollout.dtype
        if self.agent_loop_manager.watch.compare_log_probs(metrics, dtype):
            metrics[DIFFER] = 1.0
        return batch

    def _fetch_one_gen_batch(self) -> Any:
        """Begin the rows where a checkpoint's place lies behind their end: there are fewer now."""
        try:
            return super()._fetch_one_gen_batch()
        except StopIteration:
            self.train_dataloader.next_iter_state = None
            return super()._fetch_one_gen_batch()

    def _get_required_batch_multiple(self, dp_size: int) -> int:
        return required_multiple(self.config, dp_size)

    def _save_checkpoint(self) -> None:
        trainer = self.config.trainer
        output = self.agent_loop_manager.plan.output
        folder = Path(trainer.default_local_dir)
        with saving(folder, self.global_steps) as hidden:
            trainer.default_local_dir = str(hidden)
            try:
                super()._save_checkpoint()
            finally:
                trainer.default_local_dir = str(folder)
            actor = hidden / f"{PREFIX}{self.global_steps}" / "actor"
            model = self.config.actor_rollout_ref.model
            if model.lora_rank:
                split_adapter(actor, model.path)
            # A server of the checkpoint must use this template, too
            if template := OmegaConf.select(self.config, SETTING):
                shutil.copyfile(template, actor / "huggingface" / TEMPLATE)
            text = json.dumps(self._metrics_so_far())
            write_text(actor.with_name(STEP_METRICS), text, force=True)
        if output.keep:
            prune(folder.parent, self.global_steps, output.keep, output.keep_best)

    def _metrics_so_far(self) -> dict[str, float]:
        """Return the step's metrics. verl writes them after the validation that follows."""
        found = {f"timing_s/{name}": seconds for name, seconds in self.timing_raw.items()}
        found |= self.step_metrics
        found["timing_s/step"] = time.time() - self.step_begin
        numbers = {name: value for name, value in found.items() if isinstance(value, int | float)}
        return {name: value for name, value in numbers.items() if math.isfinite(value)}

    def _account(self, batch: KVBatchMeta) -> dict[str, float]:
        """Return the metrics of an update. Raises RunStopped: batch and records differ."""
        keys = []
        for key, tag in zip(batch.keys, batch.tags, strict=True):
            if not tag.get("is_padding", False):
                keys.append(key)
        data = tq.kv_batch_get(
            keys=keys, partition_id=batch.partition_id, select_fields=["loss_mask", "advantages"]
        )
        masks = data["loss_mask"].unbind()
        trained = self.agent_loop_manager.take_trained_records({session_of(key) for key in keys})
        algorithm = self.config.algorithm
        compared = compares_groups(self.config)
        metrics = check_episodes(trained, keys, sum(int(mask.sum()) for mask in masks))
        if compared and algorithm.adv_estimator != "grpo" and len(keys) > len(trained):
            raise RunStopped(
                f"{len(trained)} episodes became {len(keys)} sequences, each of which verl's "
                f"algorithm.adv_estimator={algorithm.adv_estimator} would compare as an episode; "
                "use --algorithm grpo, dr_grpo or gspo"
            )
        if algorithm.adv_estimator == "grpo" and not algorithm.use_kl_in_reward:
            found = {}  # by episode, of its last sequence's first trained token
            rows = data["advantages"].unbind()
            for key, row, mask in zip(keys, rows, masks, strict=True):
                found[session_of(key)] = float(row[mask.argmax()])
            check_advantages(trained, found, algorithm.norm_adv_by_std_in_grpo)
        if compared:
            metrics |= {
                "books/groups": len(rewards_by_group(trained)),
                "books/learnable_groups": learnable_groups(trained),
            }
        played = self.agent_loop_manager.take_step_records()
        return metrics | step_metrics(played, "episodes", compared)


class AppendingLogger(tracking.FileLogger):
    """verl's writer of `metrics.jsonl`, which would overwrite a resumed run's."""

    def __init__(self, *names: str) -> None:
        self.fp = open(os.environ["VERL_FILE_LOGGER_PATH"], "ab", buffering=0)  # noqa: SIM115 (verl closes it)


tracking.FileLogger = AppendingLogger


def train(config: DictConfig, plan: Plan) -> None:
    """Train to the end. Raises RunStopped: see `training.engine.watchdog`."""
    logging.basicConfig(level=logging.DEBUG if plan.output.debug else logging.INFO)
    trainer = None
    manager = None
    succeeded = False
    try:
        trainer = LightningTrainer(config=config)
        trainer.init()
        servers = list(trainer.llm_server_manager.get_addresses())
        manager = RolloutManager(plan, config, servers, trainer.tokenizer.decode)
        manager.policy.serves_weights_of(trainer.global_steps)
        note_time(plan.output.run_dir, "engine_ready")
        trainer.fit(manager)
        succeeded = True
    finally:
        trackers = getattr(trainer, "logger", None)
        if trackers is not None:
            trackers.finish(exit_code=0 if succeeded else 1)
        if manager is not None:
            manager.close()
        tq.close()


def note_time(run_dir: Path, event: str) -> None:
    """Write when an event first happened (Unix seconds) to `timeline.json`."""
    timeline = read_timeline(run_dir)
    if event not in timeline:
        text = json.dumps({**timeline, event: time.time()})
        write_text(run_dir / "timeline.json", text, force=True)
