"""The vLLM worker extension for CPU: keeps plain weights, so that the trainer can send new ones.

vLLM's CPU kernels repack linear weights and drop the originals, after which a weight sync has nothing to write to
("'Parameter' object has no attribute 'weight_loader'"). Without oneDNN and without the SGL kernel (the environment
variable is set in `verl.toml`) the plain weights stay. Named in `engine_kwargs.vllm.worker_extension_cls`; nobody
runs it.
"""

from __future__ import annotations

from typing import Any

import vllm._custom_ops as custom_ops
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension


class CpuWorkerExtension(vLLMColocateWorkerExtension):
    """verl's extension, with weight packing switched off before the model is loaded."""

    def __new__(cls, **kwargs: Any) -> CpuWorkerExtension:
        custom_ops._supports_onednn = False
        return super().__new__(cls, **kwargs)
