"""The training command of every agent: flags -> preset -> training.run. It decides nothing itself.

    sys.exit(main("sql"))                          # all of train_sql_agent.py
    python -m training.launch NAME --ci-fast       # the same for any agent, those of others included

Further key=value and +key=value go to verl. Exit codes: 0 done, 1 failed, 2 wrong usage, 130
interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.command import Failure, run_command
from common.stopping import stop_in_order
from training.setup.plan import ConfigError, Plan

if TYPE_CHECKING:
    from common.settings import Settings
    from episodes.agent import Agent, Options, Row

ROOT = Path(__file__).resolve().parent.parent
STARTED = time.time()
TRACKER_VARIABLES = (
    *("TENSORBOARD_DIR", "SWANLAB_API_KEY", "SWANLAB_MODE", "SWANLAB_LOG_DIR"),
    *("WANDB_API_KEY", "WANDB_MODE", "WANDB_BASE_URL"),
)
# Flags that the plan takes unchanged, under the same name.
FLAGS = (
    *(
        "n_runners",
        "concurrency",
        "keep_spans",
        "llm_proxy",
        "proxy",
        "asynchronous",
        "algorithm",
        "trajectory_level",
        "debug",
    ),
    *(
        "live",
        "keep_thinking",
        "lora_adapter_path",
        "deterministic",
        "external_store_address",
        "mongo_uri",
    ),
    *("keep", "keep_best"),
)
SETTINGS = ("temperature", "episode_timeout", "max_unscored_share")


def train(agent: Agent, options: argparse.Namespace) -> int:
    """Make the plan, let the engine be imported while the rest is checked, train, and return the
    exit code.
    """
    from common.files import check_temporary
    from training.cpu.fork_server import forking

    check_temporary()
    plan, preset = make_plan(agent, options)
    with forking(plan) as python:
        return check_and_train(agent, options, replace(plan, python=python), preset)


def check_and_train(
    agent: Agent, options: argparse.Namespace, plan: Plan, preset: dict[str, Any]
) -> int:
    """Check everything that is cheap to check, then train and return the exit code."""
    from common.files import check_writable
    from common.settings import load_settings
    from episodes.registry import own_options
    from episodes.turns import with_turns
    from training.engine.checkpoints import check_resumable, checkpoints, step_of
    from training.run import check_store, with_token
    from training.setup.agreement import check_rows, last_step
    from training.setup.cluster import check_nodes_asked
    from training.setup.model_folder import (
        check_adapter,
        check_disk,
        check_model,
        checkpoint_factor,
        checkpoints_to_come,
    )
    from training.setup.verl_config import build_config, parse_overrides

    flags = own_options(agent, options)
    settings = with_turns(agent, load_settings().under(flags), options.max_turns)
    checkpoint_keys: dict[str, Any] = {}
    checkpoint = None
    if options.resume:
        plan, checkpoint, checkpoint_keys = resumed(plan, options)
    elif plan.run_dir.exists() and any(plan.run_dir.iterdir()) and plan.role != "runner":
        raise ConfigError(
            f"--run-dir {plan.run_dir} is not empty; choose another, or add --resume to continue it"
        )
    rows = {"train": agent.rows(options.train_file), "val": agent.rows(options.val_file)}
    for note in agent.check(rows, settings, plays=plan.role != "algorithm"):
        print(note, flush=True)
    check_budgets(agent, rows, settings)
    for name, part in rows.items():
        for note in agent.check_tasks([agent.task(row, settings) for row in part], flags):
            print(f"{name}: {note}", flush=True)
    files = {name: str(plan.run_dir / "data" / f"{name}.jsonl") for name in rows}
    config = build_config(
        plan, files, {**preset, **checkpoint_keys}, parse_overrides(options.overrides)
    )
    check_rows(config, len(rows["train"]))
    last = last_step(config, len(rows["train"]))
    done = step_of(checkpoint) if checkpoint else 0
    if checkpoint:
        check_resumable(checkpoint, config)
        if options.resume == "auto" and done >= last:
            print(
                f"{plan.run_dir} is finished: step {done} of {last}; nothing is left to do",
                flush=True,
            )
            return 0
    rollout = config.actor_rollout_ref.rollout
    check_model(
        plan.model, rollout.max_model_len, plan.tools, int(rollout.tensor_model_parallel_size)
    )
    to_come = checkpoints_to_come(config, plan, done, last, len(checkpoints(plan.run_dir)))
    check_writable(plan.run_dir, "--run-dir")
    check_disk(plan.model, plan.run_dir, to_come, checkpoint_factor(config))
    if plan.lora_adapter_path:
        check_adapter(plan.lora_adapter_path, plan.lora_rank)
    check_store(plan)
    plan = with_token(plan)
    if plan.role != "runner":
        check_nodes_asked(config)
    return start(agent, flags, settings, config, plan, rows)


def start(
    agent: Agent,
    options: Options,
    settings: Settings,
    config: Any,
    plan: Plan,
    rows: Mapping[str, Any],
) -> int:
    """Start what episodes need, check that its judge can be trained on, write the rows down and
    train.
    """
    from common.jsonl import write_jsonl, write_text
    from training.run import run
    from training.serve import serve_environment
    from training.setup.device import environment
    from training.watch.summary import ENVIRONMENT

    plays = plan.role != "algorithm"
    with serve_environment(
        agent, settings, options, plan.run_dir / "logs", plan.device if plays else None
    ) as options:
        if plays:
            described = prove_judge(agent, rows["train"], settings, options)
            plan.run_dir.mkdir(parents=True, exist_ok=True)
            write_text(
                plan.run_dir / ENVIRONMENT, json.dumps(described, ensure_ascii=False), force=True
            )
        if plan.role != "runner":
            (plan.run_dir / "data").mkdir(parents=True, exist_ok=True)
            for name in rows:
                write_jsonl(plan.run_dir / "data" / f"{name}.jsonl", rows[name], force=True)
        os.environ.update(environment(plan.device))  # before the imports that read it
        from episodes.lit_agent import EpisodeAgent

        turns = (settings.min_turns or plan.max_turns, plan.max_turns)
        return run(EpisodeAgent(agent, options, turns), config, plan, STARTED)


def prove_judge(
    agent: Agent, rows: Sequence[Row], settings: Settings, options: Options
) -> dict[str, Any]:
    """Return the environment's facts about itself, once its judge has been seen to tell answers
    apart.

    Raises Failure: what episodes need does not answer, or the judge pays dishonest answers like
    honest ones.
    """
    from episodes.judge_check import check_judge, problem_of

    with closing(agent.open(settings, options)) as environment:
        tasks = [agent.task(row, settings) for row in rows]
        problem = problem_of(asyncio.run(check_judge(environment, tasks)))
        described = environment.description()
    if problem and settings.judge_check:
        raise Failure(
            f"the judge cannot be trained on: {problem}\n{environment.ways_out}; JUDGE_CHECK=0 goes on"
        )
    if problem:
        print(
            f"WARNING: the judge cannot be trained on, and JUDGE_CHECK=0: {problem}",
            file=sys.stderr,
            flush=True,
        )
    return described


def check_budgets(agent: Agent, rows: Mapping[str, list[Row]], settings: Settings) -> None:
    """Raise AgentError or ConfigError if a row makes no task, or makes one with a budget above the
    run's, which is also verl's.
    """
    for task in (agent.task(row, settings) for part in rows.values() for row in part):
        if task.max_turns and task.max_turns > settings.max_turns:
            budgets = f"task {task.id} has a budget of {task.max_turns} turns, the run one of {settings.max_turns}"
            raise ConfigError(f"{budgets}; raise --max-turns")


def make_plan(agent: Agent, options: argparse.Namespace) -> tuple[Plan, dict[str, Any]]:
    """Return the run's plan and the preset's verl keys, made of settings and flags."""
    from common.llm import reveal
    from common.settings import load_settings
    from episodes.turns import with_turns
    from training.run import new_run_dir
    from training.setup.algorithms import keys_of
    from training.setup.device import choose_device
    from training.setup.presets import GPU_MODEL, choose

    own = (
        "MAX_TURNS"
        if "max_turns" in load_settings().model_fields_set
        else f"the {agent.name} agent's own"
    )
    settings = with_turns(agent, load_settings(), options.max_turns)
    device = choose_device(options.device)
    purpose = "smoke" if options.ci_fast else "ci" if options.ci else "full"
    sizes = choose(agent, purpose, device, options.n_gpus, options.n_nodes)
    preset = {**sizes, **keys_of(options.algorithm)}
    plan = Plan(
        run_dir=(
            options.run_dir or new_run_dir(ROOT / "runs", f"{agent.name}-agent-{purpose}")
        ).resolve(),
        device=device,
        model=options.model
        or settings.base_model
        or (agent.model if device == "cpu" else GPU_MODEL),
        max_turns=settings.max_turns,
        max_turns_origin="--max-turns" if options.max_turns else own,
        max_tokens=settings.max_tokens or agent.sizes(device).reply,
        tools=bool(agent.tools),
        lora_rank=options.lora_rank if options.lora else 0,
        role=settings.agl_current_role,
        store_host=settings.agl_server_host,
        store_port=settings.agl_server_port,
        proxy_host=settings.llm_proxy_host,
        proxy_port=settings.llm_proxy_port,
        proxy_public_host=settings.llm_proxy_public_host,
        token=reveal(settings.agl_token),
        **{name: getattr(options, name) for name in FLAGS},
        managed_store=settings.agl_managed_store,
        **{name: getattr(settings, name) for name in SETTINGS},
        preset={
            "name": ", ".join(filter(None, (purpose, device, options.algorithm))),
            "keys": preset,
        },
    )
    return plan, {**preset, "trainer.logger": loggers(settings)}


def resumed(plan: Plan, options: argparse.Namespace) -> tuple[Plan, Path | None, dict[str, Any]]:
    """Return the plan, checkpoint and verl keys of a run that continues one, in the folder of its
    run or in --run-dir.
    """
    from training.engine.checkpoints import find_checkpoint, run_of, step_of
    from training.watch.summary import curve

    checkpoint = find_checkpoint(options.resume, options.run_dir, ROOT / "runs")
    run_dir = run_of(checkpoint) if checkpoint and not options.run_dir else plan.run_dir
    if checkpoint is None:
        print(f"nothing to resume in {run_dir}: the run begins", flush=True)
        return plan, None, {}
    keys: dict[str, Any] = {
        "trainer.resume_mode": "resume_path",
        "trainer.resume_from_path": str(checkpoint),
    }
    if any(
        row["step"] == step_of(checkpoint) and row["validation"] is not None
        for row in curve(run_of(checkpoint))
    ):
        keys["trainer.val_before_train"] = False  # its records hold that validation
    keys["trainer.default_local_dir"] = str(run_dir / "checkpoints")
    keys["trainer.experiment_name"] = run_dir.name
    if options.ci_fast and options.resume != "auto":
        keys["trainer.total_training_steps"] = step_of(checkpoint) + 1
    print(f"resuming from {checkpoint}", flush=True)
    return replace(plan, run_dir=run_dir), checkpoint, keys


def loggers(settings: Settings) -> list[str]:
    """Return console and file, and the trackers whose variables are set, which they find in the
    environment.
    """
    for name in TRACKER_VARIABLES:
        value = getattr(settings, name.lower())
        if value is not None:
            os.environ[name] = (
                value.get_secret_value() if hasattr(value, "get_secret_value") else value
            )
    tensorboard = ["tensorboard"] if settings.tensorboard_dir else []
    swanlab = ["swanlab"] if settings.swanlab_api_key or settings.swanlab_mode else []
    wandb = ["wandb"] if settings.wandb_api_key or settings.wandb_mode else []
    return ["console", "file", *tensorboard, *swanlab, *wandb]


def main(name: str, arguments: list[str] | None = None) -> int:
    """Run the command line of an agent and return the exit code."""
    stop_in_order()

    def body() -> int:
        from common.startup import collect_rarely
        from episodes.registry import get
        from training.setup.arguments import parse

        collect_rarely()
        agent = get(name)
        return train(agent, parse(agent, arguments))

    return run_command("error", body)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m training.launch AGENT [flags]; AGENT --help lists the flags")
    sys.exit(main(sys.argv[1], sys.argv[2:]))
