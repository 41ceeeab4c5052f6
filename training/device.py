"""Which device a run uses, and what verl, vLLM and Ray have to be told for it.

CPU settings and the facts behind them are the project's own measurements (docs/decisions.md); GPU settings are verl's.
Imports nothing heavy.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

from common.settings import ROOT

Overrides = dict[str, Any]

# One thread per engine process: with two, spinning OpenMP threads of trainer and vLLM starve each other.
CPU_ENVIRONMENT = {
    "VERL_PLATFORM": "cpu",
    "VERL_USE_EXTERNAL_MODULES": "training.cpu",
    "VERL_ENGINE_DEVICE": "cuda",  # verl's FSDP engines are registered under this name and run on any torch device
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_SGL_KERNEL": "0",
    "OMP_NUM_THREADS": "1",
    "TQ_NUM_THREADS": "1",
}

# Every process: no look-ups on the network at import.
COMMON_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "AGENTOPS_LOG_LEVEL": "CRITICAL",  # it announces web addresses of traces that are not sent anywhere
    "AGENTOPS_LOGGING_TO_FILE": "FALSE",  # else it leaves agentops.log wherever it runs
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_NO_USAGE_STATS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "120",  # 30 s are too few on two busy cores
    "RAY_AUTH_MODE": "token",  # Ray's own default, said aloud so that it does not warn
}


STRATEGY = {"actor_rollout_ref.actor.strategy": "fsdp2", "critic.strategy": "fsdp2"}


def choose_device(asked: str) -> str:
    """`auto` means a GPU where the driver's tool is installed, else the CPU; the others mean themselves."""
    found = "cuda" if shutil.which("nvidia-smi") else "cpu"
    return found if asked == "auto" else asked


def environment(device: str) -> dict[str, str]:
    """Variables every process of a run on this device needs."""
    path = os.pathsep.join(dict.fromkeys([str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]))
    return COMMON_ENVIRONMENT | {"PYTHONPATH": path.rstrip(os.pathsep)} | (CPU_ENVIRONMENT if device == "cpu" else {})


def verl_overrides(device: str) -> Overrides:
    """verl keys the device asks for; a leading + marks keys verl's files leave out."""
    return _cpu_overrides() if device == "cpu" else STRATEGY


def _cpu_overrides() -> Overrides:
    """32 bit among them: verl's engines compute in bfloat16 unless told here, whatever their `dtype` says."""
    exact = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
    actor, rollout, model = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model"
    critic = "critic.model"  # used with algorithm.adv_estimator=gae
    return {
        "trainer.device": "cpu",
        **STRATEGY,
        f"{actor}.use_torch_compile": False,
        f"{actor}.fsdp_config.use_torch_compile": False,
        f"+{actor}.fsdp_config.mixed_precision": exact,
        "+actor_rollout_ref.ref.fsdp_config.mixed_precision": exact,
        "+critic.fsdp.mixed_precision": exact,
        f"{model}.use_remove_padding": False,
        f"+{model}.override_config.attn_implementation": "sdpa",
        "critic.fsdp.use_torch_compile": False,
        f"{critic}.use_remove_padding": False,
        f"+{critic}.override_config.attn_implementation": "sdpa",
        f"{rollout}.enforce_eager": True,
        f"{rollout}.free_cache_engine": False,
        f"+{rollout}.enable_sleep_mode": False,
        f"{rollout}.dtype": "float32",
        f"{rollout}.agent.num_workers": 1,
        f"+{rollout}.engine_kwargs.vllm.worker_extension_cls": "training.cpu_vllm.CpuWorkerExtension",
        "reward.num_workers": 1,
        "data.dataloader_num_workers": 0,
        # Logical: verl's actors are many and mostly idle; Ray only counts.
        "ray_kwargs.ray_init.num_cpus": 32,
        "+ray_kwargs.ray_init.num_gpus": 1,
    }
