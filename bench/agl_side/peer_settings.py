"""The settings of the peer's training, which two environments read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

STEPS = "steps.jsonl"
MICRO_BATCH = 16  # sequences. On two cores larger ones are not faster


@dataclass(frozen=True)
class Settings:
    """The sizes of a step and how the peer plays it.

    runner_poll_s: how long a runner without work waits before it asks again. The peer's daemon
    looks for finished rollouts every 5 s, which none of its settings changes.
    """

    folder: str
    model: str
    port: int
    steps: int
    questions: int
    episodes: int
    prompt_tokens: int
    response_tokens: int
    reply_tokens: int
    max_turns: int
    temperature: float
    learning_rate: float
    clip_ratio_high: float
    runners: int
    runner_poll_s: float = 0.2

    def write(self) -> Path:
        path = Path(self.folder) / "settings.json"
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return path

    @classmethod
    def read(cls, path: Path) -> Settings:
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def verl_config(settings: Settings) -> dict[str, Any]:
    """Return the tree that agent-lightning's VERL merges into verl's defaults."""
    return {
        "agentlightning": {"trace_aggregator": _sequences(settings)},
        "algorithm": {"adv_estimator": "grpo", "use_kl_in_reward": False},
        "data": {
            "train_batch_size": settings.questions,
            "max_prompt_length": settings.prompt_tokens,
            "max_response_length": settings.response_tokens,
            "dataloader_num_workers": 0,
        },
        "actor_rollout_ref": {
            "model": {
                "path": settings.model,
                "use_remove_padding": False,
                "enable_gradient_checkpointing": False,
                "override_config": {"attn_implementation": "sdpa"},
            },
            "rollout": _rollout(settings),
            "actor": _actor(settings),
        },
        "trainer": _run(settings),
    }


def _sequences(settings: Settings) -> dict[str, Any]:
    """Return the peer's faster way to cut episodes: the turns of an episode are one sequence."""
    return {
        "level": "trajectory",
        "trajectory_max_prompt_length": settings.prompt_tokens,
        "trajectory_max_response_length": settings.response_tokens,
    }


def _rollout(settings: Settings) -> dict[str, Any]:
    served = {
        "enable_auto_tool_choice": True,
        "tool_call_parser": "hermes",
        "enable_sleep_mode": False,
    }
    return {
        "name": "vllm",
        "mode": "async",
        "dtype": "float32",
        "n": settings.episodes,
        "temperature": settings.temperature,
        "tensor_model_parallel_size": 1,
        "max_num_seqs": settings.questions * settings.episodes,
        "log_prob_micro_batch_size_per_gpu": MICRO_BATCH,
        "enforce_eager": True,
        "free_cache_engine": False,
        "agent": {"num_workers": 1},
        "engine_kwargs": {"vllm": served},
    }


def _actor(settings: Settings) -> dict[str, Any]:
    return {
        "strategy": "fsdp2",
        "ppo_mini_batch_size": settings.questions,
        "ppo_micro_batch_size_per_gpu": MICRO_BATCH,
        "use_torch_compile": False,
        "use_kl_loss": False,
        "clip_ratio_low": 0.2,
        "clip_ratio_high": settings.clip_ratio_high,
        "optim": {"lr": settings.learning_rate},
        "fsdp_config": {"dtype": "float32", "use_torch_compile": False},
    }


def _run(settings: Settings) -> dict[str, Any]:
    return {
        "device": "cpu",
        "n_gpus_per_node": 1,
        "nnodes": 1,
        "total_epochs": settings.steps,
        "total_training_steps": settings.steps,
        "val_before_train": False,
        "test_freq": -1,
        "save_freq": -1,
        "resume_mode": "disable",
        "logger": ["console"],
        "default_local_dir": settings.folder,
    }
