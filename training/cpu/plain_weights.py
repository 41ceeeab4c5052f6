"""The vLLM worker extension for CPU: keeps plain weights, so that the trainer can send new ones.

vLLM's CPU kernels pack the weights of linear layers for oneDNN and drop the originals, after which
a weight sync has nothing to write to ("'Parameter' object has no attribute 'weight_loader'"). Here
the originals stay, and verl's sync, which ends with vLLM's own processing of loaded weights, packs
them anew. The SGL kernel is left alone (the environment variable is set in `verl.toml`): it is for
AMX, where nothing of this was run. vLLM's engine, in whose process the worker is, would live on
after a server that was killed. vLLM loads this module by `engine_kwargs.vllm.worker_extension_cls`;
it is not a program.
"""

from __future__ import annotations

import os
from typing import Any

import vllm.model_executor.layers.utils as layers
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension

from common.parent import end_with
from training.cpu import token_sampler


class CpuWorkerExtension(vLLMColocateWorkerExtension):
    """An extension of vLLM's worker: before the model is loaded it makes vLLM keep the plain
    weights and draw tokens faster, and it ends the worker with its server.
    """

    def __new__(cls, **kwargs: Any) -> CpuWorkerExtension:
        packing = layers.dispatch_cpu_unquantized_gemm
        layers.dispatch_cpu_unquantized_gemm = lambda layer, remove_weight: packing(
            layer, remove_weight=False
        )
        token_sampler.install()
        end_with(os.getppid())
        return super().__new__(cls, **kwargs)
