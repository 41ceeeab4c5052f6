"""Records of rollouts, as the trainer's checks and reports read them."""

from typing import Any

from training.engine.records import RolloutRecord


def rolled_out(**changes: Any) -> RolloutRecord:
    """A rollout that was played in the first step and earned a half, with these changes."""
    usual = {"rollout_id": "r", "group": "g", "mode": "train", "step": 1, "reward": 0.5}
    return RolloutRecord(**{**usual, "status": "succeeded", **changes})
