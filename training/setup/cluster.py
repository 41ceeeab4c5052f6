"""Check the GPUs and nodes of a run, before Ray starts and in a Ray that this process joined."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from training.setup.plan import ConfigError, RunStopped
from training.setup.presets import ROLLOUT

REPLICA = ("tensor_model_parallel_size", "data_parallel_size", "pipeline_model_parallel_size")
ANSWER_SECONDS = 5.0
CPUS_PER_GPU = 3  # of verl's placement groups, which wait for them without end
JOIN_SECONDS = 60.0


def check_nodes_asked(config: DictConfig) -> None:
    """Raise ConfigError if replicas do not fit the nodes, or no Ray has several nodes."""
    rollout = OmegaConf.select(config, ROLLOUT)
    nodes = int(config.trainer.nnodes)
    gpus = int(config.trainer.n_gpus_per_node)
    replica = prod(int(rollout[name]) for name in REPLICA)
    if nodes * gpus % replica or (gpus % replica and replica % gpus):
        raise ConfigError(
            f"a vLLM replica takes {' x '.join(REPLICA)} = {replica} GPUs ({ROLLOUT}), "
            f"which do not divide {nodes} x {gpus} (--n-nodes x --n-gpus)"
        )
    address = os.environ.get("RAY_ADDRESS")
    if config.trainer.nnodes > 1 and not address:
        raise ConfigError(
            f"--n-nodes {config.trainer.nnodes} needs a Ray that has them: "
            "./restart_ray.sh --host HOST on the first machine, --address "
            "HOST:6379 on the others, then source runs/.ray/env (docs/gpu.md)"
        )
    host, _, port = (address or "").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
        except OSError:
            raise ConfigError(
                f"no Ray answers on RAY_ADDRESS={address}; start it (./restart_ray.sh), or unset it"
            ) from None


def living_nodes() -> dict[str, str]:
    """Return the addresses of the living nodes, by Ray's id of them."""
    import ray

    return {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}


def shared_files(run_dir: Path, model: str) -> list[str]:
    """Return what every node must see: a file of the run's folder, and the model if it is one."""
    return [str(run_dir / "config.yaml"), *([model] if Path(model).is_dir() else [])]


def check_nodes_found(config: DictConfig, shared: Sequence[str]) -> None:
    """Raise RunStopped if a node does not see `shared`, or a Ray has too few free GPUs after
    JOIN_SECONDS. verl would wait for these for ever.
    """
    end = time.monotonic() + (JOIN_SECONDS if os.environ.get("RAY_ADDRESS") else 0)
    nodes = int(config.trainer.nnodes)
    gpus = int(config.trainer.n_gpus_per_node)
    while True:
        names, free = _free_gpus()
        try:
            check_room(nodes, gpus, [(names[node], count) for node, count in free.items()])
            break
        except RunStopped:
            if time.monotonic() > end:
                raise
            time.sleep(1)  # a scheduler starts its machines in any order
    if len(names) > 1:
        _check_files([node for node in names if free[node]], names, shared)


def _free_gpus() -> tuple[dict[str, str], dict[str, int]]:
    """Return addresses and free GPUs, with verl's processors beside them, by node."""
    import ray

    resources = ray._private.state.available_resources_per_node()
    names = living_nodes()
    free = {}
    for node in names:
        there = resources.get(node, {})
        free[node] = min(int(there.get("GPU", 0)), int(there.get("CPU", 0)) // CPUS_PER_GPU)
    return names, free


def check_room(nodes: int, gpus: int, free: list[tuple[str, int]]) -> None:
    """Raise RunStopped if fewer than `nodes` nodes have `gpus` free. `free` is (address, GPUs)."""
    if sum(count >= gpus for _, count in free) >= nodes:
        return
    seen = ", ".join(f"{address}: {count}" for address, count in sorted(free))
    raise RunStopped(
        f"the run wants {nodes} x {gpus} GPUs (--n-nodes x --n-gpus), each with {CPUS_PER_GPU} "
        f"processors; free in this Ray are {seen or 'none'}. Add nodes (./restart_ray.sh "
        "--address; RAY_CPUS counts more processors than a machine has), wait for what "
        "holds the others, or ask for fewer"
    )


def _check_files(nodes: list[str], names: dict[str, str], paths: Sequence[str]) -> None:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    look: Any = ray.remote(num_cpus=0)(lambda: [path for path in paths if not os.path.exists(path)])
    there = [NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes]
    found = ray.get([look.options(scheduling_strategy=place).remote() for place in there])
    for node, lacking in zip(nodes, found, strict=True):
        if lacking:
            seen = f"the node {names[node]} does not see {', '.join(lacking)}"
            raise RunStopped(
                f"{seen}; all nodes of a run must share its "
                "folder, and have the model at the same place"
            )
