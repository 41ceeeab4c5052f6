"""The vLLM worker extension for CPU (`engine_kwargs.vllm.worker_extension_cls`).

vLLM's CPU kernels pack the weights of linear layers for oneDNN and drop the originals, and then a
weight sync has nothing to write to.
"""

import os
from typing import Any, Self

import vllm.model_executor.layers.utils as layers
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension

from common.parent import end_with
from training.cpu import token_sampler


class CpuWorkerExtension(vLLMColocateWorkerExtension):
    """Keep plain weights, draw tokens faster, and end the worker with its server."""

    def __new__(cls, **kwargs: Any) -> Self:
        pack = layers.dispatch_cpu_unquantized_gemm

        def pack_and_keep(layer: Any, remove_weight: bool) -> Any:
            return pack(layer, remove_weight=False)

        layers.dispatch_cpu_unquantized_gemm = pack_and_keep
        token_sampler.install()
        end_with(os.getppid())
        return super().__new__(cls, **kwargs)
