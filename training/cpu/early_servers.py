"""vLLM's servers of one machine without an accelerator, started beside the trainer's workers
instead of after them.

    begin(config, pool)                     # before the trainer is made; verl finds them when it asks

verl waits for the workers first, because on a GPU both share its memory; and since starting is
importing, on one core, the other core has nothing to do meanwhile. A server asks the workers only
where they are.
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

_begun: dict[int, Future[vLLMReplica]] = {}


class Place:
    """Where a worker of the trainer will be: all that is asked of it."""

    def __init__(self, node: str, number: int) -> None:
        self.node, self.number = node, number

    @property
    def __ray_call__(self) -> Place:
        return self

    async def remote(self, ask: Callable[..., Any]) -> tuple[str, str]:
        """The answer to verl's question: the node's id, and the device's number there."""
        return self.node, str(self.number)


class BegunReplica(vLLMReplica):
    """verl's replica of a server that has begun to start."""

    async def launch_servers(self) -> None:
        begun = await asyncio.wrap_future(_begun.pop(self.replica_rank))
        self.servers, self._server_handle = begun.servers, begun._server_handle
        self._server_address = begun._server_address


def begin(config: DictConfig, pool: Executor) -> None:
    """Start the servers of all this machine's replicas; what fails is raised when verl asks for
    them.
    """
    told, node = config.actor_rollout_ref, ray.get_runtime_context().get_node_id()
    size = told.rollout.tensor_model_parallel_size
    for rank in range(config.trainer.n_gpus_per_node // size):
        replica = vLLMReplica(rank, told.rollout, told.model, told.rollout.n_gpus_per_node)
        replica.rollout_mode = RolloutMode.HYBRID
        replica.workers = [Place(node, rank * size + number) for number in range(size)]
        _begun[rank] = pool.submit(_launch, replica)
    RolloutReplicaRegistry.register("vllm", lambda: BegunReplica)


def _launch(replica: vLLMReplica) -> vLLMReplica:
    asyncio.run(replica.launch_servers())
    return replica
