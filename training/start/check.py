"""What a run needs of its machine, checked before anything heavy is started.

done, last = steps_of(config, rows["train"], checkpoint)
check_ready(plan, config, done, last)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from omegaconf import DictConfig

from common.files import check_writable
from common.proxies import why_unusable
from episodes.agent import Row, Service
from training.engine.checkpoints import checkpoints, step_of, was_validated
from training.engine.mixture import draws
from training.engine.resumable import check_resumable, differences
from training.setup.agreement import check_rows, last_step
from training.setup.cluster import check_nodes_asked
from training.setup.device import check_libraries
from training.setup.gpu_memory import check_gpu_memory, share_of_partners
from training.setup.model_folder import (
    check_adapter,
    check_disk,
    check_model,
    checkpoint_factor,
    checkpoints_to_come,
)
from training.setup.plan import ConfigError, Plan
from training.store.store_checks import check_proxy, check_store

# What the trackers' own settings take
MODES = {
    "WANDB_MODE": ("online", "offline", "shared", "disabled", "dryrun", "run"),
    "SWANLAB_MODE": ("cloud", "online", "local", "offline", "disabled"),
}
TRACKER_FOLDERS = ("TENSORBOARD_DIR", "SWANLAB_LOG_DIR")


def steps_of(
    config: DictConfig, train_rows: Sequence[Row], checkpoint: Path | None
) -> tuple[int, int]:
    """Return the step after which a run goes on, 0 for a new one, and its last step.

    Raises ConfigError: the rows do not fill a batch, or the run cannot continue this checkpoint.
    """
    n_train = len(draws(train_rows, int(config.data.seed)))
    check_rows(config, n_train)
    last = last_step(config, n_train)
    if checkpoint is None:
        return 0, last
    check_resumable(checkpoint, config)
    for line in differences(checkpoint, config, train_rows):
        print(line, flush=True)
    return step_of(checkpoint), last


def lacks_validation(config: DictConfig, checkpoint: Path) -> bool:
    """Return whether a run validates, but ended before it had validated this checkpoint."""
    return config.trainer.test_freq > 0 and not was_validated(checkpoint)


def check_ready(
    plan: Plan, config: DictConfig, done: int, last: int, services: Sequence[Service] = ()
) -> None:
    """Check the model's folder, the run's disk, the device's libraries, the store's ports and the
    nodes, for a run that goes on after step `done` to step `last`, beside models that it serves.

    Raises UsageError, such as ConfigError: one of them cannot be used.
    """
    if why := why_unusable():
        raise ConfigError(why)
    if plan.store.role != "runner":
        check_libraries(plan.engine.device)
    rollout = config.actor_rollout_ref.rollout
    split = int(rollout.tensor_model_parallel_size)
    check_model(plan.engine.model, rollout.max_model_len, plan.engine.tools, split, trained=True)
    to_come = checkpoints_to_come(
        config, plan.output, done, last, len(checkpoints(plan.output.run_dir))
    )
    check_writable(plan.output.run_dir, "--run-dir")
    if plan.store.role != "runner":
        check_trackers(plan.output.trackers, config.trainer.logger)
    check_disk(plan.engine.model, plan.output.run_dir, to_come, checkpoint_factor(config))
    if plan.engine.lora_adapter_path:
        check_adapter(plan.engine.lora_adapter_path, plan.engine.lora_rank)
    check_store(plan.store)
    if plan.store.role != "runner":
        check_proxy(plan.proxy, plan.store.token)
        if plan.engine.device == "cuda":
            taken = share_of_partners(services, int(config.trainer.n_gpus_per_node))
            check_gpu_memory(config, plan.engine.model, taken=taken)
        check_nodes_asked(config)


def check_trackers(variables: Mapping[str, str], loggers: str | Sequence[str]) -> None:
    """Check the settings of the trackers that a run uses: trackers read them after the engine has
    started, and do not name them.

    Raises UsageError: an unknown mode, or a folder that cannot be written.
    """
    used = {
        name: value
        for name, value in variables.items()
        if name.partition("_")[0].lower() in loggers
    }
    for name, modes in MODES.items():
        if name in used and used[name] not in modes:
            raise ConfigError(f"{name}={used[name]}: expected one of {', '.join(modes)}")
    for name in TRACKER_FOLDERS:
        if name in used:
            check_writable(Path(used[name]), name)
