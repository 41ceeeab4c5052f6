"""Make as many optimizer updates a step as the settings say.

verl makes an update of each `ppo_mini_batch_size x n` sequences, two for 129 sequences of 128
episodes. Here all are shared out to `train_batch_size / ppo_mini_batch_size` updates.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from omegaconf import DictConfig

# Sections whose micro-batches have a fixed size where the flag is off: section, flag, size.
MICRO_BATCHES = (
    ("actor", "use_dynamic_bsz", "ppo_micro_batch_size_per_gpu"),
    ("rollout", "log_prob_use_dynamic_bsz", "log_prob_micro_batch_size_per_gpu"),
    ("ref", "log_prob_use_dynamic_bsz", "log_prob_micro_batch_size_per_gpu"),
)


def updates_per_epoch(config: DictConfig) -> int:
    """Return the updates that one pass over a step makes."""
    mini_batch = config.actor_rollout_ref.actor.ppo_mini_batch_size
    return int(config.data.train_batch_size) // int(mini_batch)


def required_multiple(config: DictConfig, dp_size: int) -> int:
    """Return what the sequences must be a multiple of, so that ranks and updates get equal ones."""
    parts = config.actor_rollout_ref
    micro = []
    for section, flag, size in MICRO_BATCHES:
        if not parts[section][flag]:
            micro.append(int(parts[section][size] or 1))
    return dp_size * updates_per_epoch(config) * math.lcm(*micro)


@contextmanager
def shared_out(workers: Any, method: str, updates: int) -> Iterator[list[Any]]:
    """Have `workers.method` make so many updates of its batch, and collect its answers."""
    send: Callable[[Any], Any] = getattr(workers, method)
    answers: list[Any] = []

    def send_shared_out(batch: Any) -> Any:
        real = sum(not tag.get("is_padding", False) for tag in batch.tags)
        batch.extra_info["mini_batch_size"] = len(batch.keys) // updates
        batch.extra_info["global_batch_size"] = real / updates
        answers.append(send(batch))
        return answers[-1]

    setattr(workers, method, send_shared_out)
    try:
        yield answers
    finally:
        setattr(workers, method, send)


def before_update(answers: list[Any], begin: str) -> dict[str, float]:
    """Return the metrics that begin so, of the first update: its loss has the weights that played."""
    metrics = answers[0]["metrics"]
    return {name: metrics[name][0] for name in metrics if name.startswith(begin)}


def optimizer_steps(answers: list[Any]) -> int:
    """Count the optimizer's steps: verl leaves out gradients that are not finite."""
    steps = 0
    for answer in answers:
        steps += sum(map(math.isfinite, answer["metrics"]["grad_norm"]))
    return steps
