"""verl's V1 trainer with rollouts from the LightningStore, as one Ray actor.

verl asks of a new rollout source only that it implements `generate_sequences` and fills the TransferQueue; the loop,
the advantage, the update, weight sync, validation and checkpoints are verl's own. Started by `training.algorithm`.
"""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import Any

import ray
import transfer_queue as tq
from omegaconf import DictConfig, OmegaConf
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.trainer.ppo.v1.trainer_colocate_async import PPOTrainerColocateAsync
from verl.trainer.ppo.v1.trainer_separate_async import PPOTrainerSeparateAsync
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

from training.plan import Plan
from training.records import step_metrics, weights_age
from training.rollouts import RolloutManager
from training.watch import RunStopped

logger = logging.getLogger(__name__)

WAKE_SECONDS = 1.0


class RolloutsFromStore(PPOTrainer):
    """What all of verl's trainers share here: rollouts from the store, and the books of every update.

    Mixed in before one of verl's trainers, whose own methods run through `super()`.
    """

    agent_loop_manager: RolloutManager

    def rollout_servers(self) -> list[str]:
        """host:port of the vLLM servers that play rollouts."""
        return list(self.llm_server_manager.get_addresses())

    def _build_replay_buffer(self) -> Any:
        """verl's replay buffer, woken by the rollout manager instead of sleeping 2 s at a time."""
        buffer = super()._build_replay_buffer()
        buffer._wait_for_next_poll = self._wait_for_rollouts
        return buffer

    def _wait_for_rollouts(self, partition_id: str, last_debug_time: float) -> float:
        self.agent_loop_manager.wait_for_news(WAKE_SECONDS)
        return last_debug_time

    def on_step_begin(self) -> None:
        note_time(Path(self.agent_loop_manager.plan.run_dir), "first_step")
        super().on_step_begin()

    def on_step_end(self) -> None:
        """verl gives vLLM the new weights; calls are held back meanwhile, and carry the step's number afterwards."""
        with self.agent_loop_manager.policy.changing_weights(self.global_steps):
            super().on_step_end()

    def _update_actor(self, batch: KVBatchMeta, metrics: dict) -> KVBatchMeta:
        metrics.update(self._account(batch))
        return super()._update_actor(batch, metrics)

    def _account(self, batch: KVBatchMeta) -> dict[str, float]:
        """Compare what verl is about to train on with what the policy generated.

        Raises:
            RunStopped: the two differ by a token.
        """
        keys = [key for key, tag in zip(batch.keys, batch.tags, strict=True) if not tag.get("is_padding", False)]
        masks = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id, select_fields=["loss_mask"])["loss_mask"]
        trained = sum(int(mask.sum()) for mask in masks.unbind())
        sessions = {key.rsplit("_", 1)[0] for key in keys}
        books = self.agent_loop_manager.take_books(sessions)
        generated = sum(record.generated_tokens for record in books)
        if trained != generated:
            raise RunStopped(
                f"step {self.global_steps}: {trained} tokens would be trained but the policy generated {generated}"
            )
        return {
            "books/episodes": len(sessions),
            "books/sequences": len(keys),
            "books/triplets": sum(record.triplets for record in books),
            "books/generated_tokens": generated,
            "books/trained_tokens": trained,
            **weights_age(books, self.global_steps),
            **step_metrics(self.agent_loop_manager.take_step_records(), "episodes"),
        }


class LightningTrainer(RolloutsFromStore, PPOTrainerSync):
    """Rollouts and updates take turns; every episode is played by the weights it is trained on."""

    def on_sample_end(self) -> None:
        """verl has its batch and begins to work on it."""
        self.timing_raw["end_to_update"] = time.time() - self.agent_loop_manager.last_end
        super().on_sample_end()


class ColocatedTrainer(RolloutsFromStore, PPOTrainerColocateAsync):
    """Updates begin when enough groups are finished; episodes still played wait between two calls and go on."""

    def on_sample_end(self) -> None:
        self.agent_loop_manager.policy.gate.close(self.agent_loop_manager.plan.episode_timeout)
        super().on_sample_end()


class SeparatedTrainer(RolloutsFromStore, PPOTrainerSeparateAsync):
    """Rollouts have GPUs of their own. Not run: verl's checkpoint engine for it needs nccl, nixl or mooncake."""

    def rollout_servers(self) -> list[str]:
        return list(self.standalone_server_manager.get_addresses())


TRAINERS = {"sync": LightningTrainer, "colocate_async": ColocatedTrainer, "separate_async": SeparatedTrainer}


@ray.remote
class TrainingActor:
    """Holds trainer, rollout manager and proxy; `run` returns when training ends."""

    def run(self, config: DictConfig, plan: Plan) -> None:
        """Train to the end.

        Raises:
            RunStopped: see `training.watch`.
        """
        logging.basicConfig(level=logging.DEBUG if plan.debug else logging.INFO)
        OmegaConf.resolve(config)
        tq.init(config.transfer_queue)
        trainer, manager, succeeded = None, None, False
        try:
            trainer = TRAINERS[config.trainer.v1.trainer_mode](config=config)
            trainer.init()
            manager = RolloutManager(plan, config, trainer.rollout_servers())
            manager.policy.weights_version = trainer.global_steps
            note_time(Path(plan.run_dir), "engine_ready")
            trainer.fit(manager)
            succeeded = True
        finally:
            tracking = getattr(trainer, "logger", None)
            if tracking is not None:
                tracking.finish(exit_code=0 if succeeded else 1)
            if manager is not None:
                manager.close()
            tq.close()


def note_time(run_dir: Path, event: str) -> None:
    """Write when an event first happened (Unix seconds) to `timeline.json`."""
    path = run_dir / "timeline.json"
    timeline = json.loads(path.read_text()) if path.exists() else {}
    if event not in timeline:
        timeline[event] = time.time()
        path.write_text(json.dumps(timeline))
