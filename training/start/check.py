"""Check what a run needs of its machine before anything heavy is started."""

import os
import shutil
from collections.abc import Sequence
from math import ceil
from pathlib import Path

import psutil
from omegaconf import DictConfig

from common.access import require_token
from common.files import check_writable
from common.proxies import why_unusable
from episodes.agent import Row
from training.engine.checkpoints import checkpoints, step_of
from training.engine.mixture import draws
from training.engine.resumable import check_resumable, differences
from training.setup.cluster import check_nodes_asked
from training.setup.device import check_libraries, is_large
from training.setup.model_folder import (
    ADAPTER,
    check_model,
    count_weights,
    find_model,
    read_json,
)
from training.setup.plan import ConfigError, OutputPlan, Plan
from training.setup.ports import require_free
from training.store.store_checks import check_store

# Bytes of a checkpoint for each weight, which a folder may hold in 16 or 32 bit: everything is saved
# in 32 bit, the weights twice (for verl, and as a model folder) and the two moments of AdamW of what
# is trained.
CHECKPOINT_FACTOR = 16
ADAPTER_FACTOR = 8  # with LoRA: the moments of an adapter are negligible
SPARE_BYTES = 100_000_000
# Bytes of memory of all processes for each weight, beside those of Ray and vLLM themselves. Measured
# with Qwen2.5-Coder-0.5B (docs/training.md): 18 GB, with an adapter 10.
MEMORY_FACTOR = 32
ADAPTER_MEMORY_FACTOR = 16
PROCESSES_BYTES = 2_000_000_000


def steps_of(
    config: DictConfig, train_rows: Sequence[Row], checkpoint: Path | None
) -> tuple[int, int]:
    """Return the step after which a run goes on, 0 for a new one, and its last step.

    Raises ConfigError: the rows do not fill a batch, or the checkpoint cannot be continued.
    """
    limit = int(config.data.train_max_samples)
    used = train_rows[:limit] if limit > 0 else train_rows
    count = len(draws(used, int(config.data.seed)))
    batch = int(config.data.train_batch_size)
    if count < batch:
        raise ConfigError(
            f"the training file gives {count} rows, fewer than data.train_batch_size={batch}; use"
            " more rows or a smaller batch"
        )
    epochs = int(config.trainer.total_epochs)
    last = epochs * (count // batch)  # verl drops what is left of an epoch
    asked = int(config.trainer.total_training_steps or last)
    if asked > last:
        given = f"the rows give {last} steps by trainer.total_epochs={epochs}"
        print(f"{given}, fewer than the {asked} asked for", flush=True)
    last = min(last, asked)
    if checkpoint is None:
        return 0, last
    check_resumable(checkpoint, config)
    for line in differences(checkpoint, config, train_rows):
        print(line, flush=True)
    return step_of(checkpoint), last


def check_ready(plan: Plan, config: DictConfig, done: int, last: int) -> None:
    """Check model, disk, memory, libraries, ports and nodes, for steps `done` to `last`. Raises UsageError."""
    if why := why_unusable():
        raise ConfigError(why)
    trains = plan.store.role != "runner"
    if trains:
        check_libraries(plan.engine.device)
    rollout = config.actor_rollout_ref.rollout
    check_model(plan.engine.model, rollout.max_model_len, plan.engine.tools, trained=True)
    check_writable(plan.output.run_dir, "--run-dir")
    if plan.engine.lora_adapter_path:
        check_adapter(plan.engine.lora_adapter_path, plan.engine.lora_rank)
    check_store(plan.store)
    if trains:
        there = len(checkpoints(plan.output.run_dir))
        check_disk(plan, checkpoints_to_come(config, plan.output, done, last, there))
        check_memory(plan)
        require_token(plan.proxy.host, plan.store.token, "LLM_PROXY_HOST")
        require_free(plan.proxy.host, plan.proxy.port, "LLM_PROXY_PORT")
        check_nodes_asked(config)


def check_adapter(folder: str, rank: int) -> None:
    """Raise ConfigError if this is not a folder of a LoRA adapter of this rank."""
    path = Path(folder)
    if not (path / ADAPTER).exists():
        raise ConfigError(f"--lora-adapter-path {folder}: no {ADAPTER} there")
    found = read_json(path / "adapter_config.json", "is this a folder that peft wrote?").get("r")
    if found != rank:
        raise ConfigError(f"--lora-adapter-path {folder} has rank {found}, --lora-rank is {rank}")


def checkpoints_to_come(
    config: DictConfig, output: OutputPlan, step: int, last: int, there: int
) -> int:
    """Return how many checkpoints the disk must still take, with `there` on it.

    With `--keep` a new one is written before an old one goes.
    """
    every = int(config.trainer.save_freq)
    if every <= 0 or last <= step:
        return 0
    saved = ceil(last / every) - step // every  # the last step is saved in any case
    if not output.keep:
        return saved
    return min(saved, max(1, output.keep + output.keep_best + 1 - there))


def check_disk(plan: Plan, count: int) -> None:
    """Raise ConfigError if so many checkpoints do not fit the disk of the run's folder."""
    model = plan.engine.model
    factor = ADAPTER_FACTOR if plan.engine.lora_rank else CHECKPOINT_FACTOR
    needed = count * factor * count_weights(find_model(model)) + SPARE_BYTES
    run_dir = plan.output.run_dir
    place = next(folder for folder in (run_dir, *run_dir.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    if free < needed:
        saved = "a checkpoint" if count == 1 else f"{count} checkpoints"
        raise ConfigError(
            f"{place} has {free / 1e9:.2f} GB free; {saved} of {model} and logs "
            f"need {needed / 1e9:.2f} GB. Free some, keep fewer with --keep N or "
            "a larger trainer.save_freq, or choose another disk with --run-dir"
        )


def check_memory(plan: Plan) -> None:
    """Raise ConfigError if a large model trained on the CPU does not fit the memory."""
    model = plan.engine.model
    elsewhere = bool(os.environ.get("RAY_ADDRESS"))  # a cluster's own machines train
    if plan.engine.device != "cpu" or elsewhere or not is_large(model):
        return
    factor = ADAPTER_MEMORY_FACTOR if plan.engine.lora_rank else MEMORY_FACTOR
    needed = PROCESSES_BYTES + factor * count_weights(find_model(model))
    available = psutil.virtual_memory().available
    if available < needed:
        smaller = (
            "take a smaller model" if plan.engine.lora_rank else "train an adapter with --lora"
        )
        raise ConfigError(
            f"training {model} on the CPU needs about {needed / 1e9:.1f} GB of memory, "
            f"{available / 1e9:.1f} GB are available; end other programs, or {smaller}"
        )
