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
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

from training.plan import Plan
from training.records import step_metrics
from training.rollouts import RolloutManager
from training.watch import RunStopped

logger = logging.getLogger(__name__)

WAKE_SECONDS = 1.0


class LightningTrainer(PPOTrainerSync):
    """verl's synchronous trainer, which also keeps the books of every update."""

    agent_loop_manager: RolloutManager

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
        books = self.agent_loop_manager.books
        sessions = {key.rsplit("_", 1)[0] for key in keys}
        generated = sum(books[session].generated_tokens for session in sessions)
        if trained != generated:
            raise RunStopped(
                f"step {self.global_steps}: {trained} tokens would be trained but the policy generated {generated}"
            )
        metrics = {
            "books/episodes": len(sessions),
            "books/sequences": len(keys),
            "books/triplets": sum(books[session].triplets for session in sessions),
            "books/generated_tokens": generated,
            "books/trained_tokens": trained,
            **step_metrics(self.agent_loop_manager.take_step_records(), "episodes"),
        }
        books.clear()
        return metrics


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
            trainer = LightningTrainer(config=config)
            trainer.init()
            manager = RolloutManager(plan, config, trainer.llm_server_manager.get_addresses())
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
