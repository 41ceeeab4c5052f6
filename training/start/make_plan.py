"""The plan of a run, made of flags and settings, and the checkpoint that it continues."""

import argparse
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from pydantic import SecretStr

from common.access import TOKEN
from common.command import undecoded
from common.files import check_writable
from common.language import said
from common.settings import WORK, Settings, load_settings, reveal
from episodes.agent import Agent, Options, Row, bundled_model
from episodes.joint import JointAgent, weighted
from episodes.registry import own_options
from episodes.turns import with_turns
from training.engine.checkpoints import (
    checkpoints,
    find_checkpoint,
    run_of,
    step_of,
    was_validated,
)
from training.setup.device import choose_device, is_large
from training.setup.plan import ConfigError, EnginePlan, OutputPlan, Plan, ProxyPlan, StorePlan
from training.setup.presets import GPU_MODEL, choose, keys_of
from training.setup.reading import thought_tokens
from training.start.run_folder import holds_something, not_of_a_run

RUNS = WORK / "runs"
# A process plays so many at once as fast as it plays a thousand (docs/quality.md).
EPISODES_A_RUNNER = 128
TRACKERS = ("tensorboard_", "swanlab_", "wandb_")  # how the names of their settings begin


def run_settings(agent: Agent, options: argparse.Namespace) -> tuple[Settings, Options]:
    """Return the settings of a run under the agent's own flags, and these flags."""
    flags = own_options(agent, options)
    return with_turns(agent, load_settings(), options.max_turns).under(flags), flags


def make_plan(agent: Agent, options: argparse.Namespace) -> tuple[Plan, dict[str, Any]]:
    """Return the run's plan and the preset's verl keys."""
    settings = with_turns(agent, load_settings(), options.max_turns)
    device = choose_device(options.device)
    purpose = "ci" if options.ci else "full"
    if options.ci_fast:
        purpose = "smoke"
    usual = bundled_model(agent) if device == "cpu" else GPU_MODEL
    model = options.model or settings.base_model or usual
    large = device == "cpu" and is_large(model)
    thought = thought_tokens(model, bool(agent.tools)) if options.thinking else 0
    thoughts = thought * settings.max_turns
    sizes = choose(agent, purpose, device, options.n_gpus, options.n_nodes, large, thoughts)
    preset = {**sizes, **keys_of(options.algorithm)}
    run_dir = options.run_dir or new_run_dir(RUNS, f"{agent.name}-agent-{purpose}")
    if "${" in str(run_dir):
        raise ConfigError(f"--run-dir {run_dir}: a name with ${{ is read as verl's; take another")
    for folder in (Path.cwd(), run_dir.resolve()):  # verl and Ray write both down
        if problem := undecoded(str(folder)):
            raise ConfigError(problem)
    engine = EnginePlan(
        device=device,
        model=model,
        max_turns=settings.max_turns,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens or agent.sizes(device).reply + thought,
        episode_timeout=settings.episode_timeout,
        algorithm=options.algorithm,
        trajectory_level=options.trajectory_level,
        tools=bool(agent.tools),
        keep_thinking=options.keep_thinking,
        thinking=options.thinking,
        tool_parser=options.tool_parser,
        lora_rank=options.lora_rank if options.lora else 0,
        lora_adapter_path=options.lora_adapter_path,
        deterministic=options.deterministic,
        max_unscored_share=settings.max_unscored_share,
    )
    store = StorePlan(
        role=settings.agl_current_role,
        managed=settings.agl_managed_store,
        external_address=options.external_store_address,
        host=settings.agl_server_host,
        port=settings.agl_server_port,
        token=reveal(settings.agl_token),
    )
    proxy = ProxyPlan(
        kind=options.proxy or ("litellm" if options.llm_proxy else "direct"),
        host=settings.llm_proxy_host,
        port=settings.llm_proxy_port,
        public_host=settings.llm_proxy_public_host,
    )
    named = ", ".join(filter(None, (purpose, device, options.algorithm)))
    output = OutputPlan(
        run_dir=run_dir.resolve(),
        debug=options.debug,
        keep=options.keep,
        keep_best=options.keep_best,
        preset={"name": named, "keys": preset},
        trackers=tracker_variables(settings),
    )
    plan = Plan(engine, store, proxy, output)
    return plan, {**preset, "trainer.logger": loggers(settings)}


def with_runners(plan: Plan, options: argparse.Namespace, config: DictConfig) -> Plan:
    """Return the plan with runners and episodes at once for a whole step, or as flags say."""
    episodes = int(config.data.train_batch_size) * int(config.actor_rollout_ref.rollout.n)
    least = max(plan.store.n_runners, ceil(episodes / EPISODES_A_RUNNER))
    n_runners = options.n_runners or least
    share = max(plan.store.concurrency, ceil(episodes / n_runners))
    concurrency = options.concurrency or share
    store = replace(plan.store, n_runners=n_runners, concurrency=concurrency)
    return replace(plan, store=store)


def with_token(plan: Plan) -> Plan:
    """Return the plan with a token, drawn if AGL_TOKEN is not set. Processes inherit it."""
    token = plan.store.token or secrets.token_urlsafe(32)
    os.environ[TOKEN] = token
    load_settings.cache_clear()
    return replace(plan, store=replace(plan.store, token=token))


def continued(plan: Plan, options: argparse.Namespace) -> tuple[Plan, Path | None, dict[str, Any]]:
    """Return the plan with its run folder, the checkpoint to go on from, and verl's keys.

    The folder is that of the checkpoint's run, or --run-dir. Raises ConfigError: a new run's is not
    empty or has files of the user's, or the checkpoint is missing. Raises FileError: --run-dir
    cannot be written.
    """
    check_writable(plan.output.run_dir, "--run-dir")
    if not options.resume:
        if plan.store.role != "runner" and holds_something(plan.output.run_dir):
            raise ConfigError(
                f"--run-dir {plan.output.run_dir} is not empty; choose "
                "another, or add --resume to continue it"
            )
        return plan, None, {}
    checkpoint = find_checkpoint(options.resume, options.run_dir, RUNS)
    run_dir = run_of(checkpoint) if checkpoint and not options.run_dir else plan.output.run_dir
    begins = checkpoint is None or run_of(checkpoint) != run_dir
    if begins and (found := not_of_a_run(run_dir, plan.store.role)):
        raise ConfigError(
            f"--run-dir {run_dir} has {found[0]} and is no run's folder; the run would replace "
            "that file, so choose another folder"
        )
    if checkpoint is None:
        print(said("nothing to resume in {folder}: the run begins", folder=run_dir), flush=True)
        return plan, None, {}
    if run_of(checkpoint) != run_dir and checkpoints(run_dir):
        raise ConfigError(
            f"--run-dir {run_dir} has checkpoints of its own, and --resume names one of "
            f"{run_of(checkpoint)}; choose another folder, or --resume auto to go on with its own"
        )
    step = step_of(checkpoint)
    keys: dict[str, Any] = {
        "trainer.resume_mode": "resume_path",
        "trainer.resume_from_path": str(checkpoint),
    }
    if was_validated(checkpoint):
        keys["trainer.val_before_train"] = False  # its records hold that validation
    if options.ci_fast and options.resume != "auto":
        keys["trainer.total_training_steps"] = step + 1
    print(said("resuming from {checkpoint}", checkpoint=checkpoint), flush=True)
    return replace(plan, output=replace(plan.output, run_dir=run_dir)), checkpoint, keys


def read_rows(
    agent: Agent, files: Mapping[str, Path]
) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    """Return the rows of "train" and "val", and verl's keys: drawn rows are not shuffled."""
    rows = {name: agent.rows(path) for name, path in files.items()}
    if not isinstance(agent, JointAgent):
        return rows, {}
    rows["train"] = weighted(rows["train"], agent.weights)
    return rows, {"data.shuffle": False}


def loggers(settings: Settings) -> list[str]:
    """Return console and file, and the trackers whose variables are set."""
    found = ["console", "file"]
    if settings.tensorboard_dir:
        found.append("tensorboard")
    if settings.swanlab_api_key or settings.swanlab_mode:
        found.append("swanlab")
    if settings.wandb_api_key or settings.wandb_mode:
        found.append("wandb")
    return found


def tracker_variables(settings: Settings) -> dict[str, str]:
    """Return what is set of the variables that trackers read."""
    found: dict[str, str] = {}
    for name, value in settings:
        if value is not None and name.startswith(TRACKERS):
            shown = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
            found[name.upper()] = shown
    return found


def new_run_dir(runs_dir: Path, name: str) -> Path:
    """Return an unused run folder: name, date, time, and a number if two start in one second."""
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    number = 1
    path = runs_dir / stem
    while path.exists():
        number += 1
        path = runs_dir / f"{stem}-{number}"
    return path
