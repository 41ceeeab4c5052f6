"""The checks that agent and trainer agree, made on verl's finished tree before anything heavy is
imported.

Every error names both values and where they came from. Used by `training.setup.verl_config`.
"""

from __future__ import annotations

from importlib.util import find_spec

from omegaconf import DictConfig, ListConfig, OmegaConf

from training.setup.plan import ConfigError, EnginePlan
from training.setup.presets import ACTOR, ROLLOUT

# Numbers that everything else is divided or counted by, with the least that makes sense
LEAST = {
    "data.train_batch_size": 1,
    "data.seed": 0,
    "actor_rollout_ref.actor.ppo_mini_batch_size": 1,
    "actor_rollout_ref.actor.ppo_epochs": 1,
    "actor_rollout_ref.rollout.n": 1,
    "actor_rollout_ref.rollout.max_model_len": 1,
    "actor_rollout_ref.rollout.max_num_seqs": 1,
    "actor_rollout_ref.rollout.tensor_model_parallel_size": 1,
    "data.max_prompt_length": 1,
    "data.max_response_length": 1,
    "trainer.total_epochs": 1,
    "trainer.nnodes": 1,
    "trainer.n_gpus_per_node": 1,
}
# Keys that a flag sets: what is done before the engine starts reads the flag
FLAG_OF = {
    "trainer.default_local_dir": "--run-dir",
    "trainer.default_hdfs_dir": "--run-dir",
    "trainer.resume_mode": "--resume",
    "trainer.resume_from_path": "--resume",
    "data.train_files": "--train-file",
    "data.val_files": "--val-file",
    "actor_rollout_ref.model.path": "--model",
}
MAX_TURNS_KEY = f"{ROLLOUT}.multi_turn.max_assistant_turns"
STEPS_KEY = "trainer.total_training_steps"
RATE_KEYS = (f"{ACTOR}.optim.lr", "critic.optim.lr")
MEMORY_KEY = f"{ROLLOUT}.gpu_memory_utilization"
TEMPERATURE_KEY = f"{ROLLOUT}.temperature"
VERL_ROTATES = ("max_actor_ckpt_to_keep", "max_critic_ckpt_to_keep", "remove_previous_ckpt_in_save")
# verl's trackers, with the package of each that is not verl's own
LOGGERS = {
    "console": None,
    "file": None,
    "tensorboard": "tensorboard",
    "wandb": "wandb",
    "tracking": "wandb",
    "swanlab": "swanlab",
    "mlflow": "mlflow",
    "trackio": "trackio",
    "clearml": "clearml",
    "vemlp_wandb": "volcengine_ml_platform",
    "rl_insight": "rl_insight",
}
LOGGER_KEY = "trainer.logger"
ESTIMATORS = (
    *("gae", "grpo", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "remax", "rloo"),
    *("opo", "grpo_passk", "gpg", "rloo_vectorized", "grpo_vectorized"),
    *("optimal_token_baseline", "tir_optimal_token_baseline", "gdpo"),
)
ESTIMATOR_KEY = "algorithm.adv_estimator"
# verl's estimators that do not compare answers to one question
WITHOUT_GROUPS = ("gae", "reinforce_plus_plus")


def compares_groups(config: DictConfig) -> bool:
    """Return whether an episode's advantage is measured against others of its prompt group, as in
    GRPO.
    """
    return config.algorithm.adv_estimator not in WITHOUT_GROUPS


def check_agreement(config: DictConfig, engine: EnginePlan, origins: dict[str, str]) -> None:
    """Raise ConfigError, naming both values, if agent and trainer differ in turns, temperature,
    budgets or batches.

    `origins` maps overridden keys to the override as written.
    """
    _check_keys(origins)
    _check_numbers(config, origins)
    _check_names(config, origins)
    _check_mode(config, engine)
    _check_deterministic(engine)
    _check_adapter(config)
    _check_max_turns(config, engine, origins)
    _check_sampling(config, engine, origins)
    _check_budgets(config, engine)
    _check_batches(config)
    _check_rotation(config)


def _check_mode(config: DictConfig, engine: EnginePlan) -> None:
    mode = config.trainer.v1.trainer_mode
    expected = "sync" if engine.asynchronous is None else f"{engine.asynchronous}_async"
    if mode != expected:
        raise ConfigError(f"trainer.v1.trainer_mode={mode} but the run is {expected}; use --async")
    log_probs = config.actor_rollout_ref.rollout.calculate_log_probs
    if config.algorithm.rollout_correction.bypass_mode and not log_probs:
        raise ConfigError(
            "algorithm.rollout_correction.bypass_mode=True needs "
            f"{ROLLOUT}.calculate_log_probs=True; set both or none"
        )


def _check_deterministic(engine: EnginePlan) -> None:
    reasons = {
        "--async": engine.asynchronous is not None,
        "--device cuda (not run; its kernels sum in an order of their own)": engine.device != "cpu",
    }
    for name, given in reasons.items():
        if engine.deterministic and given:
            raise ConfigError(
                f"--deterministic cannot be had with {name}; leave out one of the two"
            )


def _check_adapter(config: DictConfig) -> None:
    """Refuse an unmerged adapter: vLLM applies it only where a request names it, which requests
    over HTTP cannot.
    """
    model = config.actor_rollout_ref.model
    if model.lora_rank and not model.lora.merge:
        raise ConfigError(
            f"actor_rollout_ref.model.lora_rank={model.lora_rank} with "
            "lora.merge=False: vLLM would play without the adapter "
            "that is trained. Use --lora --lora-rank, which merges it"
        )


def _check_keys(origins: dict[str, str]) -> None:
    """Refuse keys of verl in whose place a flag is read."""
    for key, flag in FLAG_OF.items():
        if key in origins:
            raise ConfigError(f"{origins[key]}: {key} follows from {flag}; give {flag} instead")


def _check_numbers(config: DictConfig, origins: dict[str, str]) -> None:
    for key, least in LEAST.items():
        _check_whole(key, OmegaConf.select(config, key), least, origins)
    if config.trainer.total_training_steps is not None:
        _check_whole(STEPS_KEY, config.trainer.total_training_steps, 1, origins)
    for key in RATE_KEYS:
        rate = OmegaConf.select(config, key)
        if not rate >= 0:
            raise ConfigError(f"{origins.get(key, f'{key}={rate}')}: expected 0 or more")
    share = OmegaConf.select(config, MEMORY_KEY)
    if not 0 < share <= 1:
        seen = origins.get(MEMORY_KEY, f"{MEMORY_KEY}={share}")
        raise ConfigError(f"{seen}: expected a share above 0, at most 1")


def _check_names(config: DictConfig, origins: dict[str, str]) -> None:
    """Refuse an estimator or a tracker that verl does not know, and a tracker without its package;
    verl would after the engine has started.
    """
    estimator = OmegaConf.select(config, ESTIMATOR_KEY)
    if estimator not in ESTIMATORS:
        seen = origins.get(ESTIMATOR_KEY, f"{ESTIMATOR_KEY}={estimator}")
        raise ConfigError(f"{seen}: expected one of {', '.join(ESTIMATORS)}")
    loggers = OmegaConf.select(config, LOGGER_KEY)
    for name in map(str, loggers if isinstance(loggers, ListConfig) else [loggers]):
        seen = origins.get(LOGGER_KEY, f"{LOGGER_KEY}={name}")
        if name not in LOGGERS:
            raise ConfigError(f"{seen}: {name} is unknown; expected some of {', '.join(LOGGERS)}")
        package = LOGGERS[name]
        if package and find_spec(package) is None:
            raise ConfigError(f"{seen}: {name} needs the package {package}, which is not installed")


def _check_whole(key: str, value: object, least: int, origins: dict[str, str]) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        seen = origins.get(key, f"{key}={value}")
        raise ConfigError(f"{seen}: expected a whole number of {least} or more")


def _check_max_turns(config: DictConfig, engine: EnginePlan, origins: dict[str, str]) -> None:
    value = OmegaConf.select(config, MAX_TURNS_KEY)
    if value != engine.max_turns:
        raise ConfigError(
            f"max_turns differs: the agent plays {engine.max_turns} turns ({engine.max_turns_origin}), "
            f"verl has {value} (override {origins.get(MAX_TURNS_KEY, MAX_TURNS_KEY)}). Set "
            "--max-turns only; verl's is derived."
        )


def _check_sampling(config: DictConfig, engine: EnginePlan, origins: dict[str, str]) -> None:
    rollout = OmegaConf.select(config, ROLLOUT)
    if float(rollout.temperature) != engine.temperature:
        raise ConfigError(
            f"temperature differs: the agent samples at {engine.temperature} "
            f"(TEMPERATURE), verl has {rollout.temperature} (override "
            f"{origins.get(TEMPERATURE_KEY, TEMPERATURE_KEY)}). Set TEMPERATURE only."
        )
    if float(rollout.top_p) != 1.0 or int(rollout.top_k) != -1:
        raise ConfigError(
            f"{ROLLOUT}.top_p={rollout.top_p}, top_k={rollout.top_k}: "
            "verl's log-probabilities need top_p=1, top_k=-1"
        )


def _check_budgets(config: DictConfig, engine: EnginePlan) -> None:
    prompt = int(config.data.max_prompt_length)
    response = int(config.data.max_response_length)
    generated = engine.max_turns * engine.max_tokens
    if generated > response:
        raise ConfigError(
            f"max_turns x max_tokens = {engine.max_turns} x {engine.max_tokens} = "
            f"{generated} tokens do not fit data.max_response_length={response}. "
            "Raise it, or lower --max-turns or MAX_TOKENS."
        )
    places = {
        f"{ROLLOUT}.max_model_len": "vLLM's context",
        f"{ACTOR}.ppo_max_token_len_per_gpu": "one micro-batch",
    }
    for key, place in places.items():
        limit = OmegaConf.select(config, key)
        if limit is not None and prompt + response > int(limit):
            raise ConfigError(
                f"data.max_prompt_length + data.max_response_length = {prompt} + "
                f"{response} exceed {key}={limit}: the longest sequence must fit {place}"
            )


def _check_batches(config: DictConfig) -> None:
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
            f"{ACTOR}.ppo_mini_batch_size x n = {mini} x "
            f"{n} rows cannot be shared by {gpus} devices"
        )
    if n < 2 and compares_groups(config):
        raise ConfigError(
            f"{ROLLOUT}.n={n}: {config.algorithm.adv_estimator} "
            "compares answers and needs at least 2"
        )


def _check_rotation(config: DictConfig) -> None:
    """Refuse verl's own rotation of checkpoints: it forgets what it saved before a restart, knows
    no best step and leaves folders without an actor.
    """
    for key in VERL_ROTATES:
        if value := config.trainer.get(key):
            raise ConfigError(
                f"trainer.{key}={value}: use --keep N, and "
                "--keep-best, which keep whole checkpoints"
            )


def check_rows(config: DictConfig, n_train: int) -> None:
    """Raise ConfigError if the training file cannot fill one batch."""
    usable = _usable(config, n_train)
    if usable < int(config.data.train_batch_size):
        raise ConfigError(
            f"the training file gives {usable} rows, fewer than "
            f"data.train_batch_size={config.data.train_batch_size}; "
            "use more rows or a smaller batch"
        )


def last_step(config: DictConfig, n_train: int) -> int:
    """Return the number of the last step, as verl counts: epochs of whole batches, or fewer if the
    configuration says so.
    """
    steps = int(config.trainer.total_epochs) * (
        _usable(config, n_train) // int(config.data.train_batch_size)
    )
    return min(steps, int(config.trainer.total_training_steps or steps))


def _usable(config: DictConfig, n_train: int) -> int:
    limit = int(config.data.train_max_samples)
    return min(n_train, limit) if limit > 0 else n_train
