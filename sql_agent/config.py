"""Presets of the SQL agent's training: how much of what, by purpose and hardware.

A preset is verl keys and values; `train_sql_agent.py` picks one and the user's `key=value` go on top. CPU presets were
run; GPU presets are reasoned for one 80 GB card and were not run. Imports nothing heavy.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

TINY_MODEL = Path(__file__).resolve().parent / "tiny_model"
GPU_MODEL = "Qwen/Qwen3-0.6B"

ROLLOUT = "actor_rollout_ref.rollout"
ACTOR = "actor_rollout_ref.actor"
REF = "actor_rollout_ref.ref"


@dataclass(frozen=True)
class Preset:
    """verl keys and values, and the tokens the policy may generate in one call."""

    overrides: dict[str, Any]
    max_tokens: int


def default_model(device: str) -> str:
    """The model that is trained when none is named."""
    return str(TINY_MODEL) if device == "cpu" else GPU_MODEL


def choose(purpose: str, device: str, n_gpus: int) -> Preset:
    """The preset for a purpose (`smoke`, `ci`, `full`) on a device (`cpu`, `cuda`) with `n_gpus` (logical on CPU)."""
    hardware = _cpu() if device == "cpu" else _gpu(n_gpus)
    return Preset({**_common(n_gpus), **hardware.overrides, **_purpose(purpose, device)}, hardware.max_tokens)


def _common(n_gpus: int) -> dict[str, Any]:
    """GRPO as the reference trains it: no KL, clip 0.2/0.3; validation and checkpoint every 20 steps, 2 epochs."""
    return {
        "algorithm.use_kl_in_reward": False,
        f"{ACTOR}.use_kl_loss": False,
        f"{ACTOR}.kl_loss_coef": 0.0,
        f"{ACTOR}.entropy_coeff": 0,
        f"{ACTOR}.use_dynamic_bsz": True,  # micro-batches by tokens: episodes differ in length and number of sequences
        f"{ACTOR}.clip_ratio_low": 0.2,
        f"{ACTOR}.clip_ratio_high": 0.3,
        f"{ROLLOUT}.tensor_model_parallel_size": 1,
        "data.seed": 42,
        "+data.group_column": "task_type",
        "trainer.n_gpus_per_node": n_gpus,
        "trainer.nnodes": 1,
        "trainer.project_name": "sql_agent",
        "trainer.total_epochs": 2,
        "trainer.test_freq": 20,
        "trainer.save_freq": 20,
        "trainer.val_before_train": True,
    }


def _cpu() -> Preset:
    """The bundled tiny model: an episode has its prompt and three calls in 1,024 positions."""
    return Preset(
        {
            "data.max_prompt_length": 640,
            "data.max_response_length": 384,
            "data.train_batch_size": 16,
            f"{ROLLOUT}.n": 8,
            f"{ROLLOUT}.max_model_len": 1024,
            f"{ROLLOUT}.max_num_seqs": 64,
            f"{ACTOR}.ppo_mini_batch_size": 16,
            f"{ACTOR}.ppo_max_token_len_per_gpu": 2048,  # short micro-batches hold less padding
            f"{ACTOR}.optim.lr": 3e-4,
            "critic.optim.lr": 3e-4,
            "critic.ppo_max_token_len_per_gpu": 2048,
            "critic.model.enable_gradient_checkpointing": False,
            "actor_rollout_ref.model.enable_gradient_checkpointing": False,
            "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
        },
        max_tokens=96,
    )


def _gpu(n_gpus: int) -> Preset:
    """One 80 GB card or several; not run.

    Reasoning: a tool answer is capped at 8,000 characters, which is about 3,000 tokens in practice, so an episode of
    three calls needs 3 x 768 generated and 2 x about 3,000 read: 8,192 after a prompt of 2,048. 16 x 8 episodes make
    a step worth its overhead; micro-batches of two full episodes and offloading let 7B models pass beside vLLM's half.
    """
    return Preset(
        {
            "data.max_prompt_length": 2048,
            "data.max_response_length": 8192,
            "data.train_batch_size": 16 * n_gpus,
            f"{ROLLOUT}.n": 8,
            f"{ROLLOUT}.max_model_len": 10240,
            f"{ROLLOUT}.gpu_memory_utilization": 0.5,
            f"{REF}.fsdp_config.param_offload": True,
            f"{ACTOR}.ppo_mini_batch_size": 16 * n_gpus,
            f"{ACTOR}.ppo_max_token_len_per_gpu": 20480,
            f"{ACTOR}.optim.lr": 1e-6,
            f"{ACTOR}.fsdp_config.param_offload": True,
            f"{ACTOR}.fsdp_config.optimizer_offload": True,
            "critic.optim.lr": 1e-5,
            "critic.ppo_max_token_len_per_gpu": 20480,
            "critic.fsdp.param_offload": True,
            "critic.fsdp.optimizer_offload": True,
            "actor_rollout_ref.model.enable_gradient_checkpointing": True,
        },
        max_tokens=768,
    )


def _purpose(purpose: str, device: str) -> dict[str, Any]:
    if purpose == "full":
        return {}
    small = {"data.train_batch_size": 4, f"{ROLLOUT}.n": 4, f"{ACTOR}.ppo_mini_batch_size": 4}
    if purpose == "ci":
        size = {} if device == "cpu" else small
        return {**size, "trainer.total_training_steps": 20, "trainer.test_freq": 20, "trainer.save_freq": 20}
    one_step = {"trainer.total_training_steps": 1, "trainer.test_freq": 1, "trainer.save_freq": 1}
    return {**small, **one_step, "trainer.val_before_train": False, "data.val_max_samples": 16}
