"""Our few typed settings -> verl's tree, and the checks that both agree.

Everything a preset or a user writes as `key=value` passes through to verl; what follows from our own settings is
derived here, once, and an override that contradicts it is an error that names both values and where they came from.
Needs omegaconf and hydra only: no torch, no verl import.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from training.device import verl_overrides
from training.plan import ConfigError, Plan

ROLLOUT = "actor_rollout_ref.rollout"
ACTOR = "actor_rollout_ref.actor"
MAX_TURNS_KEY = f"{ROLLOUT}.multi_turn.max_assistant_turns"
TEMPERATURE_KEY = f"{ROLLOUT}.temperature"

# Below these names verl passes everything on as it is: nothing can be checked.
FREE_FORM = ("engine_kwargs", "override_config", "override_optimizer_config", "ray_init", "apply_chat_template_kwargs")

Overrides = dict[str, Any]


@dataclass(frozen=True)
class Override:
    """One `key=value` of the command line; `added` where it was written `+key=value`."""

    key: str
    value: Any
    added: bool = False

    def __str__(self) -> str:
        return f"{'+' if self.added else ''}{self.key}={self.value}"


def parse_overrides(texts: list[str]) -> list[Override]:
    """Parse `key=value` and `+key=value`; values are YAML.

    Raises:
        ConfigError: an argument without "=" or with a value that is not YAML.
    """
    return [_parse_override(text) for text in texts]


def _parse_override(text: str) -> Override:
    key, equals, value = text.partition("=")
    if not equals or not key.strip("+"):
        raise ConfigError(f"{text!r} is neither a flag nor key=value; see --help")
    try:
        return Override(key.lstrip("+"), yaml.safe_load(value), key.startswith("+"))
    except yaml.YAMLError:
        raise ConfigError(f"{text!r}: the value is not valid YAML; quote it") from None


def build_config(plan: Plan, files: dict[str, str], preset: Overrides, user: list[Override]) -> DictConfig:
    """verl's whole tree for this run: verl's defaults < device < ours < preset < the user's overrides.

    `files` has the keys `train` and `val`. The result is checked for agreement with `plan`.

    Raises:
        ConfigError: an unknown key, or values that contradict each other.
    """
    config = _verl_defaults()
    for layer in (verl_overrides(plan.device), _derived(plan, files), preset):
        for key, value in layer.items():
            OmegaConf.update(config, key.lstrip("+"), value, force_add=key.startswith("+"))
    for override in user:
        _apply(config, override)
    check_agreement(config, plan, {override.key: str(override) for override in user})
    return config


def _verl_defaults() -> DictConfig:
    spec = importlib.util.find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("verl is not installed; install the lock: ./install.sh (or make train)")
    folder = Path(next(iter(spec.submodule_search_locations))) / "trainer" / "config"
    with initialize_config_dir(config_dir=str(folder), version_base=None):
        config = compose("ppo_trainer")
    OmegaConf.set_struct(config, True)
    return config


def _derived(plan: Plan, files: dict[str, str]) -> Overrides:
    """What follows from the plan, and what makes verl run with rollouts from the store."""
    return {
        "algorithm.adv_estimator": "grpo",
        "data.train_files": files["train"],
        "data.val_files": files["val"],
        "data.custom_cls.path": "pkg://training.dataset",
        "data.custom_cls.name": "RolloutDataset",
        "actor_rollout_ref.model.path": plan.model,
        f"{ROLLOUT}.name": "vllm",
        f"{ROLLOUT}.mode": "async",
        f"{ROLLOUT}.calculate_log_probs": False,
        MAX_TURNS_KEY: plan.max_turns,
        TEMPERATURE_KEY: plan.temperature,
        f"{ROLLOUT}.val_kwargs.temperature": plan.temperature,
        f"{ROLLOUT}.val_kwargs.do_sample": True,
        f"+{ROLLOUT}.engine_kwargs.vllm.enable_auto_tool_choice": True,
        f"+{ROLLOUT}.engine_kwargs.vllm.tool_call_parser": "hermes",
        f"{ACTOR}.checkpoint.save_contents": ["model", "optimizer", "extra", "hf_model"],
        f"{ACTOR}.checkpoint.load_contents": ["model", "optimizer", "extra"],
        "transfer_queue.enable": True,
        "trainer.use_v1": True,
        "trainer.v1.trainer_mode": "sync",
        "trainer.v1.sampler.sync_refill_failed_groups": True,
        "trainer.default_local_dir": str(plan.run_dir / "checkpoints"),
        "trainer.resume_mode": "disable",
        "trainer.experiment_name": plan.run_dir.name,
    }


def _apply(config: DictConfig, override: Override) -> None:
    known = _exists(config, override.key)
    if not known and not _free_form(override.key):
        if not override.added:
            raise ConfigError(f"unknown key {override.key!r}{_suggestion(config, override.key)}")
        _require_addable(config, override)
    OmegaConf.update(config, override.key, override.value, force_add=not known)


def _exists(config: DictConfig, key: str) -> bool:
    parent, _, leaf = key.rpartition(".")
    node = OmegaConf.select(config, parent) if parent else config
    return isinstance(node, DictConfig) and leaf in node


def _free_form(key: str) -> bool:
    return any(part in FREE_FORM for part in key.split(".")[:-1])


def _require_addable(config: DictConfig, override: Override) -> None:
    """`+key` is for fields verl's typed sections have and its YAML files leave out."""
    parent, _, leaf = override.key.rpartition(".")
    node = OmegaConf.select(config, parent) if parent else config
    target = node.get("_target_") if isinstance(node, DictConfig) else None
    names = _typed_fields(target) if target else []
    if leaf not in names:
        near = get_close_matches(leaf, [*names, *(str(key) for key in node)] if isinstance(node, DictConfig) else [])
        hint = f"; did you mean {parent}.{near[0]}?" if near else _suggestion(config, override.key)
        raise ConfigError(f"verl knows no key {override.key!r}{hint}")


def _typed_fields(target: str) -> list[str]:
    module, _, name = target.rpartition(".")
    section = getattr(importlib.import_module(module), name)
    return [field.name for field in fields(section)] if is_dataclass(section) else []


def _suggestion(config: DictConfig, key: str) -> str:
    known = _leaves(OmegaConf.to_container(config, resolve=False), "")
    near = get_close_matches(key, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else "; verl's keys are listed in its trainer/config/*.yaml"


def _leaves(tree: Any, prefix: str) -> list[str]:
    if not isinstance(tree, dict) or not tree:
        return [prefix]
    return [
        leaf for name, value in tree.items() for leaf in _leaves(value, f"{prefix}.{name}" if prefix else str(name))
    ]


def check_agreement(config: DictConfig, plan: Plan, origins: dict[str, str]) -> None:
    """Agent and trainer must mean the same: turns, temperature, token budgets, batch sizes.

    `origins` maps overridden keys to the override as written.

    Raises:
        ConfigError: naming both values and their origins.
    """
    _check_max_turns(config, plan, origins)
    _check_sampling(config, plan, origins)
    _check_budgets(config, plan)
    _check_batches(config)


def _check_max_turns(config: DictConfig, plan: Plan, origins: dict[str, str]) -> None:
    value = OmegaConf.select(config, MAX_TURNS_KEY)
    if value != plan.max_turns:
        raise ConfigError(
            f"max_turns differs: the agent plays {plan.max_turns} turns ({plan.max_turns_origin}), verl is told "
            f"{value} (override {origins.get(MAX_TURNS_KEY, MAX_TURNS_KEY)}). Set --max-turns only; verl's is derived."
        )


def _check_sampling(config: DictConfig, plan: Plan, origins: dict[str, str]) -> None:
    rollout = OmegaConf.select(config, ROLLOUT)
    if float(rollout.temperature) != plan.temperature:
        raise ConfigError(
            f"temperature differs: the agent samples at {plan.temperature} (TEMPERATURE), verl is told "
            f"{rollout.temperature} (override {origins.get(TEMPERATURE_KEY, TEMPERATURE_KEY)}) and would compute "
            "log-probabilities the policy did not sample with. Set TEMPERATURE only."
        )
    if float(rollout.top_p) != 1.0 or int(rollout.top_k) != -1:
        raise ConfigError(
            f"{ROLLOUT}.top_p={rollout.top_p}, top_k={rollout.top_k}: training needs top_p=1 and top_k=-1, because "
            "verl's log-probabilities know no cut-off"
        )


def _check_budgets(config: DictConfig, plan: Plan) -> None:
    prompt, response = int(config.data.max_prompt_length), int(config.data.max_response_length)
    model_len = OmegaConf.select(config, f"{ROLLOUT}.max_model_len")
    generated = plan.max_turns * plan.max_tokens
    if generated > response:
        raise ConfigError(
            f"max_turns x max_tokens = {plan.max_turns} x {plan.max_tokens} = {generated} tokens do not fit "
            f"data.max_response_length={response}, which holds a whole episode after its first prompt. "
            "Raise it, or lower --max-turns or MAX_TOKENS."
        )
    micro = int(OmegaConf.select(config, f"{ACTOR}.ppo_max_token_len_per_gpu"))
    if prompt + response > micro:
        raise ConfigError(
            f"data.max_prompt_length + data.max_response_length = {prompt} + {response} exceed "
            f"{ACTOR}.ppo_max_token_len_per_gpu={micro}: the longest sequence must fit one micro-batch"
        )
    if model_len is not None and prompt + response > int(model_len):
        raise ConfigError(
            f"data.max_prompt_length + data.max_response_length = {prompt} + {response} exceed "
            f"{ROLLOUT}.max_model_len={model_len}"
        )


def _check_batches(config: DictConfig) -> None:
    batch, mini = int(config.data.train_batch_size), int(OmegaConf.select(config, f"{ACTOR}.ppo_mini_batch_size"))
    gpus = int(config.trainer.n_gpus_per_node) * int(config.trainer.nnodes)
    n = int(OmegaConf.select(config, f"{ROLLOUT}.n"))
    if mini > batch or batch % mini:
        raise ConfigError(f"data.train_batch_size={batch} is not a multiple of {ACTOR}.ppo_mini_batch_size={mini}")
    if (mini * n) % gpus:
        raise ConfigError(
            f"{ACTOR}.ppo_mini_batch_size x {ROLLOUT}.n = {mini} x {n} rows cannot be shared by {gpus} devices"
        )
    if n < 2:
        raise ConfigError(f"{ROLLOUT}.n={n}: GRPO compares answers to one question and needs at least 2")


def check_rows(config: DictConfig, n_train: int) -> None:
    """Raises ConfigError when the training file cannot fill one batch."""
    limit = int(config.data.train_max_samples)
    usable = min(n_train, limit) if limit > 0 else n_train
    if usable < int(config.data.train_batch_size):
        raise ConfigError(
            f"the training file gives {usable} rows and data.train_batch_size={config.data.train_batch_size}: "
            "no step could be made. Use more rows or a smaller batch."
        )
