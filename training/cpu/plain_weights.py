"""The vLLM worker extension for CPU: keeps plain weights, so that the trainer can send new ones.

vLLM's CPU kernels repack linear weights and drop the originals, after which a weight sync has
nothing to write to ("'Parameter' object has no attribute 'weight_loader'"). Without oneDNN and
without the SGL kernel (the environment variable is set in `verl.toml`) the plain weights stay.
vLLM's engine, in whose process the worker is, would live on after a server that was killed. vLLM
loads this module by `engine_kwargs.vllm.worker_extension_cls`; it is not a program.
"""

from __future__ import annotations

import os
from typing import Any

import vllm._custom_ops as custom_ops
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension

from common.parent import end_with


class CpuWorkerExtension(vLLMColocateWorkerExtension):
    """An extension of vLLM's worker: it switches weight packing off before the model is loaded, and
    ends the worker with its server.
    """

    def __new__(cls, **kwargs: Any) -> CpuWorkerExtension:
        custom_ops._supports_onednn = False
        end_with(os.getppid())
        return super().__new__(cls, **kwargs)
