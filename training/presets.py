"""Presets of a training run: how much of what, by purpose and hardware; an agent brings the sizes of its episodes.

A preset is verl keys and values; `training/launch.py` picks one and the user's `key=value` go on top. CPU presets were
run; GPU presets are reasoned for one 80 GB card and were not run. Imports nothing heavy.
"""

from __future__ import annotations

from typing import Any

from episodes.agent import Agent, Sizes

GPU_MODEL = "Qwen/Qwen3-0.6B"

ROLLOUT = "actor_rollout_ref.rollout"
ACTOR = "actor_rollout_ref.actor"
REF = "actor_rollout_ref.ref"


def choose(agent: Agent, purpose: str, device: str, n_gpus: int) -> dict[str, Any]:
    """verl keys for a purpose (`smoke`, `ci`, `full`) on a device (`cpu`, `cuda`) with `n_gpus` (logical on CPU)."""
    sizes = agent.sizes(device)
    return {
        **_common(n_gpus),
        "data.max_prompt_length": sizes.prompt,
        "data.max_response_length": sizes.response,
        f"{ROLLOUT}.max_model_len": sizes.prompt + sizes.response,
        "trainer.project_name": f"{agent.name}_agent",
        **(_cpu() if device == "cpu" else _gpu(n_gpus, sizes)),
        **_purpose(purpose, device),
    }


def _common(n_gpus: int) -> dict[str, Any]:
    """GRPO as the reference trains it; where nothing is said here or below, so does verl: no KL, lower clip 0.2."""
    return {
        f"{ACTOR}.use_dynamic_bsz": True,  # micro-batches by tokens: episodes differ in length and number of sequences
        f"{ACTOR}.clip_ratio_high": 0.3,
        f"{ROLLOUT}.tensor_model_parallel_size": 1,
        f"{ROLLOUT}.n": 8,
        "data.seed": 42,
        "+data.group_column": "task_type",
        "trainer.n_gpus_per_node": n_gpus,
        "trainer.total_epochs": 2,
        "trainer.test_freq": 20,
        "trainer.save_freq": 20,
    }


def _cpu() -> dict[str, Any]:
    """A bundled tiny model."""
    return {
        "data.train_batch_size": 16,
        f"{ROLLOUT}.max_num_seqs": 64,
        f"{ACTOR}.ppo_mini_batch_size": 16,
        f"{ACTOR}.ppo_max_token_len_per_gpu": 2048,  # short micro-batches hold less padding
        f"{ACTOR}.optim.lr": 3e-4,
        "critic.optim.lr": 3e-4,
        "critic.ppo_max_token_len_per_gpu": 2048,
        "critic.model.enable_gradient_checkpointing": False,
        "actor_rollout_ref.model.enable_gradient_checkpointing": False,
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
    }


def _gpu(n_gpus: int, sizes: Sizes) -> dict[str, Any]:
    """One 80 GB card or several; not run. 16 x 8 episodes make a step worth its overhead; micro-batches of two full
    episodes and offloading let 7B models pass beside vLLM's half."""
    micro_batch = 2 * (sizes.prompt + sizes.response)
    return {
        "data.train_batch_size": 16 * n_gpus,
        f"{REF}.fsdp_config.param_offload": True,
        f"{ACTOR}.ppo_mini_batch_size": 16 * n_gpus,
        f"{ACTOR}.ppo_max_token_len_per_gpu": micro_batch,
        f"{ACTOR}.optim.lr": 1e-6,
        f"{ACTOR}.fsdp_config.param_offload": True,
        f"{ACTOR}.fsdp_config.optimizer_offload": True,
        "critic.ppo_max_token_len_per_gpu": micro_batch,
        "critic.fsdp.param_offload": True,
        "critic.fsdp.optimizer_offload": True,
    }


def _purpose(purpose: str, device: str) -> dict[str, Any]:
    if purpose == "full":
        return {}
    small = {"data.train_batch_size": 4, f"{ROLLOUT}.n": 4, f"{ACTOR}.ppo_mini_batch_size": 4}
    if purpose == "ci":
        size = {} if device == "cpu" else small
        return {**size, "trainer.total_training_steps": 20, "trainer.test_freq": 20, "trainer.save_freq": 20}
    one_step = {"trainer.total_training_steps": 1, "trainer.test_freq": 1, "trainer.save_freq": 1}
    return {**small, **one_step, "trainer.val_before_train": False, "data.val_max_samples": 16}
