"""Check that agent and trainer agree, on verl's finished tree, before anything heavy is imported.

Every error names what was seen and where it came from.
"""

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from training.setup.plan import ConfigError, EnginePlan
from training.setup.presets import ACTOR, ALGORITHMS, ROLLOUT, VERL_DEFAULTS

MAX_TURNS_KEY = f"{ROLLOUT}.multi_turn.max_assistant_turns"
TEMPERATURE_KEY = f"{ROLLOUT}.temperature"
STEPS_KEY = "trainer.total_training_steps"
CORRECTION = "algorithm.rollout_correction"
BYPASS = f"{CORRECTION}.bypass_mode"
LOSS = f"{ACTOR}.policy_loss.loss_mode"
OVERRIDES = VERL_DEFAULTS["override"]
CHOICES = OVERRIDES["choices"]
LISTS = ("trainer.logger", f"{ACTOR}.checkpoint.save_contents")  # of these, others take one name


def compares_groups(config: DictConfig) -> bool:
    """Return whether an advantage is measured against others of its prompt group."""
    return bool(config.algorithm.adv_estimator != "reinforce_plus_plus")


def check_agreement(
    config: DictConfig, engine: EnginePlan, own: Mapping[str, Any], origins: Mapping[str, str]
) -> None:
    """Raise ConfigError if these contradict each other.

    own: values of the keys in `[override.instead]` before the overrides. origins: these as written,
    by key.
    """
    for key, instead in OVERRIDES["instead"].items():
        value = OmegaConf.select(config, key)
        if value != own[key]:
            # The key itself, or a group that holds it
            texts = [text for at, text in origins.items() if f"{key}.".startswith(f"{at}.")]
            seen = "; ".join(dict.fromkeys([*texts, f"{key}={value}"]))
            raise ConfigError(f"{seen} has no use here, where it is {own[key]}: {instead}")
    needed = {"a run here": VERL_DEFAULTS["run"]["fixed"]}
    if engine.deterministic:
        needed["--deterministic"] = VERL_DEFAULTS["run"]["deterministic"]
    if engine.algorithm:
        needed[f"--algorithm {engine.algorithm}"] = ALGORITHMS[engine.algorithm]["fixed"]
    for what, keys in needed.items():
        for added, value in keys.items():
            key = added.lstrip("+")
            seen = OmegaConf.select(config, key)
            if seen != value:
                raise ConfigError(f"{key}={seen}: {what} needs {key}={value}; leave it out")
    for key, least in OVERRIDES["least"].items():
        value = OmegaConf.select(config, key)
        if key == STEPS_KEY and value is None:
            continue
        if type(value) is not int or value < least:
            seen = origins.get(key, f"{key}={value}")
            raise ConfigError(f"{seen}: expected a whole number of {least} or more")
    _check_mode(config, engine)
    _check_sizes(config, engine)


def _check_mode(config: DictConfig, engine: EnginePlan) -> None:
    for key, names in CHOICES.items():
        value = OmegaConf.select(config, key)
        given = value if key in LISTS and isinstance(value, ListConfig) else [value]
        if value is not None and not set(given) <= set(names):
            raise ConfigError(f"{key}={value}: expected one of {', '.join(names)}")
    for key, bound in OVERRIDES["above"].items():
        value = OmegaConf.select(config, key)
        if value <= bound:
            raise ConfigError(f"{key}={value}: expected a number above {bound}")
    if engine.deterministic and engine.device != "cpu":
        raise ConfigError("--deterministic needs --device cpu: a GPU's kernels sum in any order")
    rate = config.actor_rollout_ref.actor.optim.lr
    if rate < 0:
        raise ConfigError(f"{ACTOR}.optim.lr={rate}: expected a number of 0 or more")
    _check_correction(config)
    model = config.actor_rollout_ref.model
    if model.lora_rank and not model.lora.merge:
        # vLLM applies an adapter only where a request names it
        raise ConfigError(
            f"actor_rollout_ref.model.lora_rank={model.lora_rank} with lora.merge=False: vLLM "
            "would play without the adapter; use --lora --lora-rank, which merges it"
        )


def _check_correction(config: DictConfig) -> None:
    correction = config.algorithm.rollout_correction
    loss = config.actor_rollout_ref.actor.policy_loss
    recorded = f"{ROLLOUT}.calculate_log_probs"
    corrects = [f"{CORRECTION}.{name}" for name in ("rollout_is", "rollout_rs")]
    corrects = [key for key in corrects if OmegaConf.select(config, key) is not None]
    needed = dict.fromkeys(corrects, recorded)
    if correction.bypass_mode:
        needed[BYPASS] = recorded
    # Without it, this loss would compare the trainer with itself
    if loss.loss_mode == "bypass_mode":
        needed[LOSS] = BYPASS
    if correction.loss_type != "ppo_clip":
        needed[f"{CORRECTION}.loss_type"] = BYPASS
    for key, other in needed.items():
        if not OmegaConf.select(config, other):
            seen = OmegaConf.select(config, key)
            raise ConfigError(f"{key}={seen} needs {other}=True; set both or neither")
    if correction.bypass_mode and corrects:
        raise ConfigError(
            f"{corrects[0]}={OmegaConf.select(config, corrects[0])} needs log-probabilities of the "
            f"trainer that are not computed with {BYPASS}=True, the default on the CPU; set it to false"
        )
    beta = loss.dro_beta
    if loss.loss_mode == "dro" and not (isinstance(beta, int | float) and beta > 0):
        name = LOSS.replace("loss_mode", "dro_beta")
        raise ConfigError(f"{LOSS}=dro needs a number above 0 as {name}, which is {beta}")


def _check_sizes(config: DictConfig, engine: EnginePlan) -> None:
    prompt = int(config.data.max_prompt_length)
    response = int(config.data.max_response_length)
    generated = engine.max_turns * engine.max_tokens
    if generated > response:
        raise ConfigError(
            f"max_turns x max_tokens = {engine.max_turns} x {engine.max_tokens} = {generated} tokens"
            f" do not fit data.max_response_length={response}. Raise it (by default it comes"
            " from the agent's `sizes`), or lower --max-turns or MAX_TOKENS."
        )
    for key in (f"{ROLLOUT}.max_model_len", f"{ACTOR}.ppo_max_token_len_per_gpu"):
        limit = OmegaConf.select(config, key)
        if limit is not None and prompt + response > int(limit):
            raise ConfigError(
                f"data.max_prompt_length + data.max_response_length = {prompt} + {response} exceed"
                f" {key}={limit}, which must hold the longest sequence"
            )
    batch = int(config.data.train_batch_size)
    mini = int(OmegaConf.select(config, f"{ACTOR}.ppo_mini_batch_size"))
    gpus = int(config.trainer.n_gpus_per_node) * int(config.trainer.nnodes)
    n = int(OmegaConf.select(config, f"{ROLLOUT}.n"))
    if mini > batch or batch % mini:
        raise ConfigError(
            f"data.train_batch_size={batch} is not a multiple of {ACTOR}.ppo_mini_batch_size={mini}"
        )
    if (mini * n) % gpus:
        raise ConfigError(
            f"{ACTOR}.ppo_mini_batch_size x n = {mini} x {n} rows cannot be shared by {gpus} devices"
        )
    if n < 2 and compares_groups(config):
        estimator = config.algorithm.adv_estimator
        raise ConfigError(f"{ROLLOUT}.n={n}: {estimator} compares answers and needs at least 2")
