"""Check the GPUs and nodes of a run, before Ray starts and in a Ray that this process joined."""

import os
import socket
import time
from math import prod

from omegaconf import DictConfig, OmegaConf

from training.setup.plan import ConfigError, RunStopped
from training.setup.presets import ROLLOUT

REPLICA = ("tensor_model_parallel_size", "data_parallel_size", "pipeline_model_parallel_size")
ANSWER_SECONDS = 5.0
CPUS_PER_GPU = 3  # of verl's placement groups, which wait for them without end
JOIN_SECONDS = 60.0


def check_nodes_asked(config: DictConfig) -> None:
    """Raise ConfigError if replicas do not fit the nodes, or the Ray that several need is missing."""
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
    if nodes > 1 and not address:
        raise ConfigError(
            f"--n-nodes {nodes} needs a Ray that has them: "
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


def check_nodes_found(config: DictConfig) -> None:
    """Raise RunStopped if a Ray has too few free GPUs after JOIN_SECONDS. verl would wait for ever."""
    end = time.monotonic() + (JOIN_SECONDS if os.environ.get("RAY_ADDRESS") else 0)
    nodes = int(config.trainer.nnodes)
    gpus = int(config.trainer.n_gpus_per_node)
    free = free_gpus()
    while sum(count >= gpus for _, count in free) < nodes:
        if time.monotonic() > end:
            seen = ", ".join(f"{address}: {count}" for address, count in sorted(free))
            raise RunStopped(
                f"the run wants {nodes} x {gpus} GPUs (--n-nodes x --n-gpus), each with "
                f"{CPUS_PER_GPU} processors; free in this Ray are {seen or 'none'}. Add nodes "
                "(./restart_ray.sh --address; RAY_CPUS counts more processors than a machine has), "
                "wait for what holds the others, or ask for fewer"
            )
        time.sleep(1)  # a scheduler starts its machines in any order
        free = free_gpus()


def free_gpus() -> list[tuple[str, int]]:
    """Return each living node's address and free GPUs, with verl's processors beside them."""
    import ray

    resources = ray._private.state.available_resources_per_node()
    free = []
    for node in ray.nodes():
        if node["Alive"]:
            there = resources.get(node["NodeID"], {})
            beside = int(there.get("CPU", 0)) // CPUS_PER_GPU
            free.append((node["NodeManagerAddress"], min(int(there.get("GPU", 0)), beside)))
    return free
