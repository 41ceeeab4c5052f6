"""The GPUs and nodes of a run: what is checked before Ray starts, and whether a joined Ray has
them.

`check_nodes_asked` needs nothing; `check_nodes_found` needs a Ray that this process has joined.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
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
# Seconds until Ray declares a silent machine dead: it asks every 3 s, and waits 10 s five times
LOST_SECONDS = 45.0


def pools(config: DictConfig) -> list[tuple[int, int]]:
    """Return (nodes, GPUs of each) that verl reserves."""
    return [(int(config.trainer.nnodes), int(config.trainer.n_gpus_per_node))]


def check_nodes_asked(config: DictConfig) -> None:
    """Raise ConfigError if vLLM's replicas do not fit the nodes, or if several nodes are requested
    and no Ray has them.
    """
    rollout = OmegaConf.select(config, ROLLOUT)
    nodes, gpus = pools(config)[-1]
    replica = prod(int(rollout[name]) for name in REPLICA)
    if nodes * gpus % replica or (gpus % replica and replica % gpus):
        raise ConfigError(
            f"a vLLM replica takes {' x '.join(REPLICA)} = {replica} GPUs ({ROLLOUT}), "
            f"which do not divide {nodes} x {gpus} (--n-nodes x --n-gpus): give it a "
            "share of a node's GPUs that leaves none over, or whole nodes"
        )
    address = os.environ.get("RAY_ADDRESS")
    if config.trainer.nnodes > 1 and not address:
        raise ConfigError(
            f"--n-nodes {config.trainer.nnodes} needs a Ray that has them: "
            "./restart_ray.sh --host HOST on the first machine, --address "
            "HOST:6379 on the others, then source runs/.ray/env (docs/gpu.md)"
        )
    host, _, port = (address or "").rpartition(":")
    if host and port.isdigit() and not _answers(host, int(port)):
        raise ConfigError(
            f"no Ray answers on RAY_ADDRESS={address}; start "
            "it (./restart_ray.sh), or unset RAY_ADDRESS"
        )


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=ANSWER_SECONDS).close()
    except OSError:
        return False
    return True


def living_nodes() -> dict[str, str]:
    """Return the addresses of the living nodes, by Ray's id of them."""
    import ray

    return {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}


def check_none_lost(
    before: Mapping[str, str],
    why: str,
    look: Callable[[], Mapping[str, str]] = living_nodes,
    wait: float = LOST_SECONDS,
) -> None:
    """Raise RunStopped if a machine of `before` (addresses by Ray's ids) has left the Ray that the
    run joined.

    `why` is what failed. Ray has `wait` seconds to notice. With a single machine nothing is
    checked.
    """
    end = time.monotonic() + (wait if len(before) > 1 else 0)
    while len(before) > 1 and before.keys() <= look().keys() and time.monotonic() < end:
        time.sleep(1)
    lost = (
        sorted({before[node] for node in before.keys() - look().keys()}) if len(before) > 1 else []
    )
    if lost:
        raise RunStopped(
            f"lost from the Ray of this run: {', '.join(lost)} ({why}). When a machine is back, "
            f"on it: ./restart_ray.sh --address {os.environ.get('RAY_ADDRESS', 'HOST:6379')}; "
            "then, here, the same command with --resume auto"
        )


def shared_files(run_dir: Path, model: str) -> list[str]:
    """Return what every node must see: a file of the run's folder, and the model if it is one."""
    return [str(run_dir / "config.yaml"), *([model] if Path(model).is_dir() else [])]


def check_nodes_found(config: DictConfig, shared: Sequence[str]) -> None:
    """Raise RunStopped if a Ray has too few free GPUs, for which verl would wait for ever, or if a
    node does not see a file or folder of `shared`, which all have to.

    Nodes of a cluster have JOIN_SECONDS to come.
    """
    end = time.monotonic() + (JOIN_SECONDS if os.environ.get("RAY_ADDRESS") else 0)
    while True:
        names, free = _free_gpus()
        try:
            check_room(pools(config), [(names[node], count) for node, count in free.items()])
            break
        except RunStopped:
            if time.monotonic() > end:
                raise
            time.sleep(1)  # a scheduler starts its machines in any order
    if len(names) > 1:
        _check_files([node for node in names if free[node]], names, shared)


def _free_gpus() -> tuple[dict[str, str], dict[str, int]]:
    """Return the addresses of the living nodes, and how many free GPUs each has with the processors
    that verl reserves beside them, by Ray's id of them.
    """
    import ray

    resources = ray._private.state.available_resources_per_node()
    names = living_nodes()
    free = {}
    for node in names:
        there = resources.get(node, {})
        free[node] = min(int(there.get("GPU", 0)), int(there.get("CPU", 0)) // CPUS_PER_GPU)
    return names, free


def check_room(asked: list[tuple[int, int]], free: list[tuple[str, int]]) -> None:
    """Raise RunStopped if `asked`, (nodes, GPUs of each), does not fit the nodes' `free` GPUs,
    (address, GPUs).
    """
    left = [count for _, count in free]
    for gpus in sorted((gpus for nodes, gpus in asked for _ in range(nodes)), reverse=True):
        left.sort()
        if not left or left[-1] < gpus:
            wanted = " and ".join(f"{nodes} x {gpus}" for nodes, gpus in asked)
            seen = ", ".join(f"{address}: {count}" for address, count in sorted(free))
            raise RunStopped(
                f"the run wants {wanted} GPUs (--n-nodes x --n-gpus), each with {CPUS_PER_GPU} "
                f"processors; free in this Ray are {seen or 'none'}. Add nodes (./restart_ray.sh "
                "--address; RAY_CPUS counts more processors than a machine has), wait for what "
                "holds the others, or ask for fewer"
            )
        left[-1] -= gpus


def _check_files(nodes: list[str], names: dict[str, str], paths: Sequence[str]) -> None:
    """Raise RunStopped unless every node sees the run folder, where each writes its part of a
    checkpoint, and the model.
    """
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
