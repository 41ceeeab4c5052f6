"""Our few typed settings -> verl's tree. What follows from them is derived here, once."""

from collections.abc import Collection
from dataclasses import dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.utils import get_class
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from training.setup.agreement import BYPASS, MAX_TURNS_KEY, TEMPERATURE_KEY, check_agreement
from training.setup.device import in_bfloat16
from training.setup.model_folder import CACHE_BLOCK, cache_bytes
from training.setup.plan import ConfigError, EnginePlan
from training.setup.presets import MICRO_BATCH, ROLLOUT, VERL_DEFAULTS

CACHE = "kv_cache_memory_bytes"
# Losses that measure with BYPASS how far apart vLLM and trainer are. Others would not say, and
# gspo's clip is narrower than the noise between these two
MEASURING = ("vanilla", "bypass_mode")
Overrides = dict[str, Any]  # keys of verl. A leading + marks those its files leave out

# Below these names verl passes everything on unchanged, so nothing can be checked.
FREE_FORM = (
    "engine_kwargs",
    "override_config",
    "override_optimizer_config",
    "ray_init",
    "apply_chat_template_kwargs",
)


@dataclass(frozen=True)
class Override:
    """One `key=value` of the command line. `added` where it was written `+key=value`."""

    text: str
    key: str
    value: Any
    added: bool = False


def parse_overrides(texts: list[str]) -> list[Override]:
    """Parse `key=value` and `+key=value`. Values are YAML. Raises ConfigError."""
    overrides = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip("+."):
            raise ConfigError(f"{text!r} is neither a flag nor key=value; see --help")
        try:
            tree: Any = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={value}"]))
        except (yaml.YAMLError, OmegaConfBaseException):
            raise ConfigError(f"{text!r}: the value is not valid YAML; quote it") from None
        overrides.append(Override(text, key.lstrip("+"), tree["value"], key.startswith("+")))
    return overrides


def build_config(
    engine: EnginePlan,
    run_dir: Path,
    files: dict[str, str],
    preset: Overrides,
    user: list[Override],
) -> DictConfig:
    """Return verl's tree: defaults < device < ours < preset < --deterministic < the user's.

    Raises ConfigError: an unknown key, or values that contradict each other.
    """
    config = _verl_defaults()
    defaults = config.copy()
    device = VERL_DEFAULTS["device"]
    short = engine.device == "cpu" and in_bfloat16(engine.model)
    exact = VERL_DEFAULTS["run"]["deterministic"] if engine.deterministic else {}
    for layer in (
        device["every"],
        device.get(engine.device, {}),
        device["cpu_bfloat16"] if short else {},
        _derived(engine, run_dir, files),
        preset,
        exact,
    ):
        for key, value in layer.items():
            OmegaConf.update(config, key.lstrip("+"), value, force_add=key.startswith("+"))
    before = config.copy()
    own = {key: OmegaConf.select(before, key) for key in VERL_DEFAULTS["override"]["instead"]}
    for override in user:
        _apply(config, defaults, override)
    _fit_micro_batch(config, before, {override.key for override in user})
    listed = config.trainer.logger
    others = [listed] if isinstance(listed, str) else listed
    # The run's own books are made of what verl writes to the file
    config.trainer.logger = list(dict.fromkeys(["console", "file", *others]))
    rollout = config.actor_rollout_ref.rollout
    if not rollout.val_kwargs.do_sample:
        rollout.val_kwargs.temperature = 0.0
    if engine.device == "cpu":
        sequences = rollout.max_num_seqs
        size = cache_bytes(engine.model, sequences, rollout.max_model_len, rollout.dtype)
        cache = {CACHE: size, "block_size": CACHE_BLOCK}
        rollout.engine_kwargs.vllm = {**cache, **rollout.engine_kwargs.vllm}
    loss = config.actor_rollout_ref.actor.policy_loss
    correction = config.algorithm.rollout_correction
    if loss.loss_mode not in MEASURING and OmegaConf.is_interpolation(correction, "bypass_mode"):
        correction.bypass_mode = False  # the user did not set it
    check_agreement(config, engine, own, {override.key: override.text for override in user})
    if correction.bypass_mode and loss.loss_mode == "vanilla":
        loss.loss_mode = "bypass_mode"  # the same loss, which also measures
    return config


def _verl_defaults() -> DictConfig:
    package = find_spec("verl")  # verl itself imports torch
    if package is None or package.origin is None:
        raise ModuleNotFoundError(name="verl")
    folder = Path(package.origin).with_name("trainer") / "config"
    with initialize_config_dir(config_dir=str(folder), version_base=None):
        config = compose("ppo_trainer")
    OmegaConf.set_struct(config, True)
    return config


def _derived(engine: EnginePlan, run_dir: Path, files: dict[str, str]) -> Overrides:
    run = VERL_DEFAULTS["run"]
    keys = {
        **run["every"],
        **run["fixed"],
        **(run["tools"] if engine.tools else {}),
        "data.train_files": files["train"],
        "data.val_files": files["val"],
        "actor_rollout_ref.model.path": engine.model,
        # vLLM's, compared with the trainer's in every step
        f"{ROLLOUT}.calculate_log_probs": True,
        MAX_TURNS_KEY: engine.max_turns,
        TEMPERATURE_KEY: engine.temperature,
        f"{ROLLOUT}.val_kwargs.temperature": engine.temperature,
        "trainer.default_local_dir": str(run_dir / "checkpoints"),
        "trainer.experiment_name": run_dir.name,
    }
    if engine.lora_rank:  # merged into the weights vLLM gets. Its scale is 2 at any rank
        model = "actor_rollout_ref.model"
        keys[f"{model}.lora_rank"] = engine.lora_rank
        keys[f"{model}.lora_alpha"] = 2 * engine.lora_rank
        keys[f"{model}.lora.merge"] = True
        keys[f"{model}.lora_adapter_path"] = engine.lora_adapter_path
    if engine.device == "cpu":
        # vLLM's log-probabilities are the old policy's, which saves a pass over every batch. Where
        # it rounds the weights to bfloat16, the ratio corrects that
        keys[BYPASS] = f"${{{ROLLOUT}.calculate_log_probs}}"
    return keys


def _apply(config: DictConfig, defaults: DictConfig, override: Override) -> None:
    own = OmegaConf.select(defaults, override.key)
    value = override.value
    if isinstance(own, DictConfig) and isinstance(value, dict):
        for name, inner in value.items():
            key = f"{override.key}.{name}"
            _apply(config, defaults, replace(override, key=key, value=inner))
        return
    if isinstance(own, DictConfig):
        raise ConfigError(f"{override.text}: {override.key} is a group of keys; set one of them")
    if isinstance(value, float) and not isfinite(value):
        raise ConfigError(f"{override.text}: expected a finite number")
    parent, _, leaf = override.key.rpartition(".")
    node = OmegaConf.select(config, parent) if parent else config
    keys = [str(key) for key in node] if isinstance(node, DictConfig) else []
    if leaf not in keys:
        _refuse_unknown(override, node, keys)
    set_before = OmegaConf.select(config, override.key) if leaf in keys else None
    if isinstance(value, dict) and not isinstance(set_before, DictConfig | None):
        raise ConfigError(f"{override.text}: expected a value like {set_before!r}")
    OmegaConf.update(config, override.key, value, force_add=leaf not in keys)
    try:
        given = OmegaConf.select(config, override.key)
    except OmegaConfBaseException as error:
        why = str(error).splitlines()[0]
        raise ConfigError(f"{override.text}: what it refers to cannot be read ({why})") from None
    if given is None and own is not None:  # null, `???` or what it refers to
        raise ConfigError(f"{override.text}: it needs a value; verl's own is {own!r}")
    if not _is_like(set_before, given):
        raise ConfigError(f"{override.text}: expected a value like {set_before!r}")


def _fit_micro_batch(config: DictConfig, before: DictConfig, given: Collection[str]) -> None:
    """Keep room for as many full episodes as in `before`, unless the user sized the room."""
    room = OmegaConf.select(before, MICRO_BATCH)
    length = config.actor_rollout_ref.rollout.max_model_len
    sized = MICRO_BATCH in given or OmegaConf.select(config, MICRO_BATCH) != room
    if length and not sized:  # check_agreement refuses null
        episodes = room // before.actor_rollout_ref.rollout.max_model_len
        OmegaConf.update(config, MICRO_BATCH, episodes * length)


def _is_like(before: Any, value: Any) -> bool:
    """Return whether a value is of the kind that stands there. `true` is no number."""
    if value is None:
        return True
    if isinstance(before, bool):
        return value in (True, False)
    if isinstance(before, int | float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return not isinstance(before, ListConfig) or isinstance(value, ListConfig | str)


def _refuse_unknown(override: Override, node: Any, keys: list[str]) -> None:
    *parents, leaf = override.key.split(".")
    allowed = []
    # verl's typed sections have more than its files, which `+key` adds
    if override.added and isinstance(node, DictConfig) and "_target_" in node:
        section = get_class(node["_target_"])
        allowed = [one.name for one in fields(section)] if is_dataclass(section) else []
    if leaf in allowed or any(part in FREE_FORM for part in parents):
        return
    known = [".".join([*parents, name]) for name in [*allowed, *keys]]
    near = get_close_matches(override.key, known, n=1, cutoff=0.6)
    hint = "--help lists the usual ones, such as actor_rollout_ref.actor.optim.lr"
    if near:
        hint = f"did you mean {near[0]!r}?"
    raise ConfigError(f"verl knows no key {override.key!r}; {hint}")
