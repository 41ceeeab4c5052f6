"""The vLLM worker extension for CPU: keeps plain weights, so that the trainer can send new ones.

vLLM's CPU kernels pack the weights of linear layers for oneDNN and drop the originals, after which
a weight sync has nothing to write to. Named by `engine_kwargs.vllm.worker_extension_cls`.
"""

from __future__ import annotations

import os
from typing import Any

import vllm.model_executor.layers.utils as layers
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension

from common.parent import end_with
from training.cpu import token_sampler


class CpuWorkerExtension(vLLMColocateWorkerExtension):
    """Keeps plain weights, draws tokens faster, and ends the worker with its server."""

    def __new__(cls, **kwargs: Any) -> CpuWorkerExtension:
        packing = layers.dispatch_cpu_unquantized_gemm
        layers.dispatch_cpu_unquantized_gemm = lambda layer, remove_weight: packing(
            layer, remove_weight=False
        )
        token_sampler.install()
        end_with(os.getppid())
        return super().__new__(cls, **kwargs)
