"""Start vLLM's servers beside the trainer's workers, on a machine without an accelerator.

verl waits for the workers first, because on a GPU both share its memory. Here a start is mostly
importing, and a server asks the workers only for their addresses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import ray
from omegaconf import DictConfig
from verl.workers.rollout.replica import RolloutMode, RolloutReplicaRegistry
from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMReplica

from training.engine.kept_tokens import KeepingReplica

_begun: dict[int, Future[vLLMReplica]] = {}


class WorkerAddress:
    """The address of a worker that is yet to start. A server asks it for nothing else."""

    def __init__(self, node: str, number: int) -> None:
        self.node = node
        self.number = number

    @property
    def __ray_call__(self) -> WorkerAddress:
        return self

    async def remote(self, ask: Callable[..., Any]) -> tuple[str, str]:
        """Return the answer to verl's question: the node's id, and the device's number there."""
        return self.node, str(self.number)


class BegunReplica(vLLMReplica):
    async def launch_servers(self) -> None:
        begun = await asyncio.wrap_future(_begun.pop(self.replica_rank))
        self.servers = begun.servers
        self._server_handle = begun._server_handle
        self._server_address = begun._server_address


def begin(config: DictConfig, pool: Executor) -> None:
    """Start the servers of this machine's replicas. Errors are raised when verl asks for them."""
    settings = config.actor_rollout_ref
    node = ray.get_runtime_context().get_node_id()
    size = settings.rollout.tensor_model_parallel_size
    for rank in range(config.trainer.n_gpus_per_node // size):
        replica = KeepingReplica(
            rank, settings.rollout, settings.model, settings.rollout.n_gpus_per_node
        )
        replica.rollout_mode = RolloutMode.HYBRID
        replica.workers = [WorkerAddress(node, rank * size + number) for number in range(size)]
        _begun[rank] = pool.submit(_launch, replica)
    RolloutReplicaRegistry.register("vllm", lambda: BegunReplica)


def _launch(replica: vLLMReplica) -> vLLMReplica:
    asyncio.run(replica.launch_servers())
    return replica
