"""Check that agent and trainer agree, on verl's finished tree, before anything heavy is imported.

Every error names what was seen and where it came from.
"""

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from training.setup.plan import ConfigError, EnginePlan
from training.setup.presets import ACTOR, ALGORITHMS, ROLLOUT, VERL_DEFAULTS

MAX_TURNS_KEY = f"{ROLLOUT}.multi_turn.max_assistant_turns"
TEMPERATURE_KEY = f"{ROLLOUT}.temperature"
STEPS_KEY = "trainer.total_training_steps"
# Whole numbers by which steps, tasks and tokens are counted, with the least that makes sense
LEAST = {
    "trainer.save_freq": -1,
    "trainer.test_freq": -1,
    "data.train_max_samples": -1,
    "data.val_max_samples": -1,
    STEPS_KEY: 1,
    "data.train_batch_size": 1,
    "data.seed": 0,
    "actor_rollout_ref.actor.ppo_mini_batch_size": 1,
    "actor_rollout_ref.actor.ppo_epochs": 1,
    "actor_rollout_ref.rollout.n": 1,
    "actor_rollout_ref.rollout.val_kwargs.n": 1,
    "actor_rollout_ref.rollout.max_model_len": 1,
    "actor_rollout_ref.rollout.max_num_seqs": 1,
    "actor_rollout_ref.rollout.tensor_model_parallel_size": 1,
    "data.max_prompt_length": 1,
    "data.max_response_length": 1,
    "trainer.total_epochs": 1,
    "trainer.nnodes": 1,
    "trainer.n_gpus_per_node": 1,
}
JUDGED = "the agent gives the reward (docs/agents.md)"
# Keys that no override may change, and what is to be done instead
INSTEAD = {
    # What is done before the engine starts reads the flag or the variable
    "trainer.device": "use --device",
    "trainer.default_local_dir": "use --run-dir",
    "trainer.default_hdfs_dir": "use --run-dir",
    "trainer.resume_mode": "use --resume",
    "trainer.resume_from_path": "use --resume",
    "data.train_files": "use --train-file",
    "data.val_files": "use --val-file",
    "actor_rollout_ref.model.path": "use --model",
    MAX_TURNS_KEY: "use --max-turns",
    TEMPERATURE_KEY: "set TEMPERATURE",
    # verl's own rotation forgets what it saved before a restart, and knows no best step
    "trainer.max_actor_ckpt_to_keep": "all stay, or use --keep N and --keep-best",
    # These change nothing here, or nothing good
    "trainer.project_name": "it is the agent's name; --run-dir names the run",
    f"{ROLLOUT}.do_sample": "training samples; leave it out",
    f"{ROLLOUT}.repetition_penalty": "what is trained has none; leave it out",
    f"{ROLLOUT}.ignore_eos": "the model ends its reply, at MAX_TOKENS at the latest; leave it out",
    "data.apply_chat_template_kwargs": "use --thinking or --keep-thinking",
    "data.val_batch_size": "a validation is judged whole; data.val_max_samples makes it smaller",
    "data.gen_batch_size": "tasks are drawn one by one; leave it out",
    "data.filter_overlong_prompts": "the agent makes the prompts; raise data.max_prompt_length",
    "reward.custom_reward_function.path": JUDGED,
    "custom_reward_function.path": JUDGED,
    "ray_kwargs.ray_init.include_dashboard": "Ray's dashboard stays off; leave it out",
    "ray_kwargs.ray_init.log_to_driver": "use --debug",
    "ray_kwargs.ray_init.logging_level": "use --debug",
    "ray_kwargs.ray_init.address": "set RAY_ADDRESS",
}
# Names that verl 0.9.1 can compute with what it is given here. It looks for them in its first update
CHOICES = {
    "algorithm.adv_estimator": (
        *("grpo", "grpo_vectorized", "grpo_passk", "rloo", "rloo_vectorized", "opo", "gpg"),
        *("reinforce_plus_plus", "reinforce_plus_plus_baseline"),
    ),
    f"{ACTOR}.policy_loss.loss_mode": (
        *("vanilla", "bypass_mode", "gspo", "sapo", "gpg", "geo_mean", "cispo", "dro"),
        *("clip_cov", "kl_cov", "dppo_tv", "dppo_kl"),
    ),
    f"{ACTOR}.loss_agg_mode": (
        *("token-mean", "token-sum"),
        *("seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"),
    ),
}


def compares_groups(config: DictConfig) -> bool:
    """Return whether an advantage is measured against others of its prompt group."""
    return bool(config.algorithm.adv_estimator != "reinforce_plus_plus")


def check_agreement(
    config: DictConfig, engine: EnginePlan, own: Mapping[str, Any], origins: Mapping[str, str]
) -> None:
    """Raise ConfigError if these contradict each other.

    own: what the keys of INSTEAD were before the overrides. origins: these as written, by key.
    """
    for key, instead in INSTEAD.items():
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
    for key, least in LEAST.items():
        value = OmegaConf.select(config, key)
        if key == STEPS_KEY and value is None:
            continue
        if type(value) is not int or value < least:
            seen = origins.get(key, f"{key}={value}")
            raise ConfigError(f"{seen}: expected a whole number of {least} or more")
    _check_mode(config, engine)
    _check_sizes(config, engine)


def _check_mode(config: DictConfig, engine: EnginePlan) -> None:
    if config.algorithm.adv_estimator == "gae" or config.critic.enable:
        raise ConfigError(
            "algorithm.adv_estimator=gae and critic.enable need a critic, which is not trained here; "
            "use --algorithm grpo, dr_grpo or gspo"
        )
    for key, names in CHOICES.items():
        value = OmegaConf.select(config, key)
        if value not in names:
            raise ConfigError(f"{key}={value}: expected one of {', '.join(names)}")
    if engine.deterministic and engine.device != "cpu":
        raise ConfigError("--deterministic needs --device cpu: a GPU's kernels sum in any order")
    rate = config.actor_rollout_ref.actor.optim.lr
    if rate < 0:
        raise ConfigError(f"{ACTOR}.optim.lr={rate}: expected a number of 0 or more")
    rollout = config.actor_rollout_ref.rollout
    if float(rollout.top_p) != 1.0 or int(rollout.top_k) != -1:
        raise ConfigError(
            f"{ROLLOUT}.top_p={rollout.top_p}, top_k={rollout.top_k}: "
            "verl's log-probabilities need top_p=1, top_k=-1"
        )
    if config.algorithm.rollout_correction.bypass_mode and not rollout.calculate_log_probs:
        raise ConfigError(
            "algorithm.rollout_correction.bypass_mode=True needs "
            f"{ROLLOUT}.calculate_log_probs=True; set both or neither"
        )
    model = config.actor_rollout_ref.model
    if model.lora_rank and not model.lora.merge:
        # vLLM applies an adapter only where a request names it
        raise ConfigError(
            f"actor_rollout_ref.model.lora_rank={model.lora_rank} with lora.merge=False: vLLM "
            "would play without the adapter; use --lora --lora-rank, which merges it"
        )


def _check_sizes(config: DictConfig, engine: EnginePlan) -> None:
    prompt = int(config.data.max_prompt_length)
    response = int(config.data.max_response_length)
    generated = engine.max_turns * engine.max_tokens
    if generated > response:
        raise ConfigError(
            f"max_turns x max_tokens = {engine.max_turns} x {engine.max_tokens} = {generated} tokens"
            f" do not fit data.max_response_length={response}. Raise it, or lower --max-turns or"
            " MAX_TOKENS."
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
