"""Train the SQL agent: flags -> preset -> training.run. Decides nothing itself.

    python train_sql_agent.py --ci-fast                   one step on this machine, to see it work
    python train_sql_agent.py                             the long run
    AGL_MANAGED_STORE=0 python train_sql_agent.py --llm-proxy --model DIR --external-store-address http://HOST:4747

Further key=value and +key=value go to verl. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from common.settings import Settings
    from training.plan import Plan

ROOT = Path(__file__).resolve().parent
STARTED = time.time()
TRACKER_VARIABLES = (
    "SWANLAB_API_KEY",
    "SWANLAB_MODE",
    "SWANLAB_LOG_DIR",
    "WANDB_API_KEY",
    "WANDB_MODE",
    "WANDB_BASE_URL",
)


class Parser(argparse.ArgumentParser):
    """argparse that names the flag an unknown one was probably meant to be."""

    def error(self, message: str) -> NoReturn:
        unknown = [word.split("=")[0] for word in message.split() if word.startswith("--")]
        near = get_close_matches(unknown[0], list(self._option_string_actions)) if unknown else []
        hint = f"; did you mean {near[0]}?" if near and "unrecognized" in message else ""
        self.exit(2, f"error: {message}{hint}\nsee {self.prog} --help\n")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line; ends the program with code 2 where it is wrong."""
    parser = Parser(
        prog="train_sql_agent.py",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--train-file", default=str(ROOT / "data" / "train.parquet"), help="questions to train on (Parquet or JSONL)")
    add("--val-file", default=str(ROOT / "data" / "val.parquet"), help="questions to validate on (Parquet or JSONL)")
    add(
        "--model",
        help="model folder or hub id (default: BASE_MODEL, else the bundled tiny model on CPU, Qwen/Qwen3-0.6B on GPU)",
    )
    add("--ci-fast", action="store_true", help="one step, one validation, one checkpoint")
    add("--ci", action="store_true", help="20 steps")
    add(
        "--llm-proxy",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="trace the agent's LLM calls in the proxy (OtelTracer, LlmProxyTraceToTriplet), or in the runners "
        "(AgentOpsTracer, TracerTraceToTriplet)",
    )
    add(
        "--proxy",
        choices=("litellm", "direct"),
        default="litellm",
        help="what the LLM proxy is: litellm (any API format), or a thin recording endpoint before vLLM, which costs a "
        "fraction a call (docs/performance.md)",
    )
    add(
        "--trajectory-level",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="merge an episode's calls into one sequence where their token ids allow it",
    )
    add(
        "--max-turns",
        type=int,
        help="calls of the policy in one episode, the closing one included (default: MAX_TURNS, else 3)",
    )
    add("--external-store-address", metavar="URL", help="use a store served elsewhere; needs AGL_MANAGED_STORE=0")
    add("--mongo-uri", metavar="URI", help="keep the managed store in MongoDB, a replica set (needs pymongo)")
    add("--n-runners", type=int, default=4, help="processes that run episodes (default: 4)")
    add(
        "--concurrency",
        type=int,
        default=32,
        help="episodes a runner process plays at once (default: 32); 0: agent-lightning's own runner, which plays one "
        "at a time and is always used with --no-llm-proxy, because its tracer cannot tell episodes apart",
    )
    add("--keep-spans", action="store_true", help="keep the spans of all rollouts in the run folder's spans/")
    add(
        "--async",
        dest="asynchronous",
        nargs="?",
        const="colocate",
        choices=("colocate", "separate"),
        help="play the next rollouts while the policy is updated: on the same devices (colocate), or on GPUs of their "
        "own (separate: not run, needs nccl, nixl or mooncake)",
    )
    add("--lora", action="store_true", help="train an adapter (LoRA) of --lora-rank beside frozen weights")
    add("--lora-rank", type=int, default=32, help="with --lora: rank of the adapter (default: 32)")
    add(
        "--lora-adapter-path", metavar="DIR", help="with --lora: go on from this adapter (its rank must be --lora-rank)"
    )
    add(
        "--deterministic",
        action="store_true",
        help="two runs with the same data.seed are equal to the last bit: one LLM call after another, CPU only",
    )
    add("--n-gpus", type=int, default=1, help="GPUs of this node (default: 1)")
    add(
        "--resume",
        "--resume_checkpoint",
        nargs="?",
        const="latest",
        metavar="latest|PATH",
        help="continue from the latest checkpoint, or from a global_step_N folder",
    )
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to train (default: auto)")
    add("--run-dir", type=Path, help="folder of this run (default: runs/<name>, new)")
    add("--debug", action="store_true", help="log everything, on the screen too")
    add("overrides", nargs="*", metavar="key=value", help="overrides for verl")
    options = parser.parse_intermixed_args(arguments)
    if options.resume and "=" in options.resume:
        options.overrides.append(options.resume)
        options.resume = "latest"
    if options.lora_adapter_path and not options.lora:
        parser.error("--lora-adapter-path needs --lora")
    for flag in ("n_runners", "n_gpus", "max_turns", "lora_rank"):
        if (value := getattr(options, flag)) is not None and value < 1:
            parser.error(f"--{flag.replace('_', '-')} {value}: expected 1 or more")
    if options.concurrency < 0:
        parser.error(f"--concurrency {options.concurrency}: expected 0 or more")
    return options


def train(options: argparse.Namespace) -> int:
    """Check everything cheap, then train; returns the exit code."""
    from data.load import load_rows, write_rows
    from sql_agent.preflight import check_judge, prepare_rows, require_references
    from training.agreement import check_rows
    from training.config import build_config, parse_overrides
    from training.device import environment
    from training.models import check_adapter, check_disk, check_model
    from training.run import check_store, run

    plan, preset = make_plan(options)
    checkpoint_keys: dict[str, Any] = {}
    if options.resume:
        plan, checkpoint_keys = resumed(plan, options)
    elif plan.run_dir.exists() and any(plan.run_dir.iterdir()) and plan.role != "runner":
        from training.plan import ConfigError

        raise ConfigError(f"--run-dir {plan.run_dir} is not empty; choose another, or add --resume to continue it")
    files = {"train": options.train_file, "val": options.val_file}
    rows = {name: load_rows(path) for name, path in files.items()}
    prepare_rows(rows, check=plan.role != "algorithm")  # where only weights are made, no database need be
    require_references(rows["train"])
    copies = {name: plan.run_dir / "data" / f"{name}.parquet" for name in files}
    paths = {name: str(path) for name, path in copies.items()}
    config = build_config(plan, paths, {**preset, **checkpoint_keys}, parse_overrides(options.overrides))
    check_rows(config, len(rows["train"]))
    check_model(plan.model, config.actor_rollout_ref.rollout.max_model_len)
    check_disk(plan.model, plan.run_dir)
    if plan.lora_adapter_path:
        check_adapter(plan.lora_adapter_path, plan.lora_rank)
    check_store(plan)
    if plan.role != "algorithm":  # there the episodes are judged elsewhere
        check_judge()
    if plan.role != "runner":
        for name, path in copies.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_rows(rows[name], path)
    os.environ.update(environment(plan.device))  # before the imports that read it
    from episodes.lit_agent import SqlAgent

    return run(SqlAgent(max_turns=plan.max_turns), config, plan, STARTED)


def make_plan(options: argparse.Namespace) -> tuple[Plan, dict[str, Any]]:
    """Settings and flags -> the run's plan and the preset's verl keys."""
    from common.settings import load_settings
    from sql_agent.config import choose, default_model
    from training.device import choose_device
    from training.plan import Plan
    from training.run import new_run_dir

    settings = load_settings()
    device = choose_device(options.device)
    purpose = "smoke" if options.ci_fast else "ci" if options.ci else "full"
    preset = choose(purpose, device, options.n_gpus)
    turns, origin = (options.max_turns, "--max-turns") if options.max_turns else (settings.max_turns, "MAX_TURNS")
    plan = Plan(
        run_dir=(options.run_dir or new_run_dir(ROOT / "runs", f"sql-agent-{purpose}")).resolve(),
        device=device,
        model=options.model or settings.base_model or default_model(device),
        max_turns=turns,
        max_turns_origin=origin,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens or preset.max_tokens,
        episode_timeout=settings.episode_timeout,
        n_runners=options.n_runners,
        concurrency=options.concurrency,
        keep_spans=options.keep_spans,
        llm_proxy=options.llm_proxy,
        proxy=options.proxy,
        asynchronous=options.asynchronous,
        trajectory_level=options.trajectory_level,
        lora_rank=options.lora_rank if options.lora else 0,
        lora_adapter_path=options.lora_adapter_path,
        deterministic=options.deterministic,
        managed_store=settings.managed_store,
        external_store_address=options.external_store_address,
        mongo_uri=options.mongo_uri,
        role=settings.agl_current_role,
        store_host=settings.agl_server_host,
        store_port=settings.agl_server_port,
        proxy_host=settings.llm_proxy_host,
        proxy_port=settings.llm_proxy_port,
        proxy_public_host=settings.llm_proxy_public_host,
        max_unscored_share=settings.max_unscored_share,
        debug=options.debug,
    )
    return plan, {**preset.overrides, "trainer.logger": loggers(settings)}


def resumed(plan: Plan, options: argparse.Namespace) -> tuple[Plan, dict[str, Any]]:
    """The plan and verl keys of a run that continues a checkpoint, in the folder of its run or in --run-dir."""
    from training.checkpoints import find_checkpoint, run_of, step_of

    checkpoint = find_checkpoint(options.resume, options.run_dir, ROOT / "runs")
    keys: dict[str, Any] = {"trainer.resume_mode": "resume_path", "trainer.resume_from_path": str(checkpoint)}
    run_dir = plan.run_dir if options.run_dir else run_of(checkpoint)
    keys["trainer.default_local_dir"] = str(run_dir / "checkpoints")
    keys["trainer.experiment_name"] = run_dir.name
    if options.ci_fast:
        keys["trainer.total_training_steps"] = step_of(checkpoint) + 1
    print(f"resuming from {checkpoint}", flush=True)
    return replace(plan, run_dir=run_dir), keys


def loggers(settings: Settings) -> list[str]:
    """Console and file always; SwanLab and W&B when their variables are set, which they find in the environment."""
    for name in TRACKER_VARIABLES:
        value = getattr(settings, name.lower())
        if value is not None:
            os.environ[name] = value.get_secret_value() if hasattr(value, "get_secret_value") else value
    chosen = ["console", "file"]
    if settings.swanlab_api_key or settings.swanlab_mode:
        chosen.append("swanlab")
    if settings.wandb_api_key or settings.wandb_mode:
        chosen.append("wandb")
    return chosen


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; every user's mistake ends in one message and code 2."""
    options = parse(arguments)
    try:
        from common.startup import collect_rarely

        collect_rarely()
        from common.settings import SettingsError
        from data.load import DataError
        from sql_agent.preflight import PreflightError
        from tools.sql.database import DatabaseError
        from training.plan import ConfigError
    except ImportError as error:
        print(f"error: package {error.name} is missing; install the lock: ./install.sh", file=sys.stderr)
        return 2
    try:
        return train(options)
    except (ConfigError, DataError, DatabaseError, PreflightError, SettingsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        print(
            f"error: package {error.name} is missing or broken ({error}); install the lock: ./install.sh",
            file=sys.stderr,
        )
        return 2
    except OSError as error:
        print(f"error: {error.strerror or error}: {error.filename or 'while writing the run folder'}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
