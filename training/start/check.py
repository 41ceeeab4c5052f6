"""Check what a run needs of its machine before anything heavy is started."""

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig

from common.files import check_writable
from common.proxies import why_unusable
from episodes.agent import Row
from training.engine.checkpoints import checkpoints, step_of
from training.engine.mixture import draws
from training.engine.resumable import check_resumable, differences
from training.setup.agreement import last_step
from training.setup.cluster import check_nodes_asked
from training.setup.device import check_libraries
from training.setup.model_folder import (
    ADAPTER_FACTOR,
    CHECKPOINT_FACTOR,
    check_adapter,
    check_disk,
    check_model,
    checkpoints_to_come,
)
from training.setup.plan import ConfigError, Plan
from training.store.store_checks import check_proxy, check_store


def steps_of(
    config: DictConfig, train_rows: Sequence[Row], checkpoint: Path | None
) -> tuple[int, int]:
    """Return the step after which a run goes on, 0 for a new one, and its last step.

    Raises ConfigError: the rows do not fill a batch, or the checkpoint cannot be continued.
    """
    limit = int(config.data.train_max_samples)
    used = train_rows[:limit] if limit > 0 else train_rows
    last = last_step(config, len(draws(used, int(config.data.seed))))
    asked = config.trainer.total_training_steps
    if asked and asked > last:
        times = f"trainer.total_epochs={config.trainer.total_epochs}"
        print(
            f"the rows give {last} steps by {times}, fewer than the {asked} asked for", flush=True
        )
    if checkpoint is None:
        return 0, last
    check_resumable(checkpoint, config)
    for line in differences(checkpoint, config, train_rows):
        print(line, flush=True)
    return step_of(checkpoint), last


def check_ready(plan: Plan, config: DictConfig, done: int, last: int) -> None:
    """Check model, disk, libraries, ports and nodes, for steps `done` to `last`. Raises UsageError."""
    if why := why_unusable():
        raise ConfigError(why)
    if plan.store.role != "runner":
        check_libraries(plan.engine.device)
    rollout = config.actor_rollout_ref.rollout
    check_model(plan.engine.model, rollout.max_model_len, plan.engine.tools, trained=True)
    check_writable(plan.output.run_dir, "--run-dir")
    if plan.engine.lora_adapter_path:
        check_adapter(plan.engine.lora_adapter_path, plan.engine.lora_rank)
    check_store(plan.store)
    if plan.store.role != "runner":
        there = len(checkpoints(plan.output.run_dir))
        to_come = checkpoints_to_come(config, plan.output, done, last, there)
        factor = ADAPTER_FACTOR if plan.engine.lora_rank else CHECKPOINT_FACTOR
        check_disk(plan.engine.model, plan.output.run_dir, to_come, factor)
        check_proxy(plan.proxy, plan.store.token)
        check_nodes_asked(config)
