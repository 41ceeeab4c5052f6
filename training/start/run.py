"""One entry to the engine room: store, roles, runners and trainer, from the first check to
`summary.json`.

    exit_code = training.start.run.run(agent, config, plan)

`agent` is an agent-lightning LitAgent, `config` verl's tree from
`training.setup.verl_config.build_config`. This module's imports stay light; agent-lightning is
imported once everything cheap has been checked.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.metadata import distributions
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from common.access import TOKEN
from common.jsonl import write_jsonl, write_text
from common.settings import load_settings
from episodes.pace import LONGEST
from training.engine.checkpoints import run_of, step_of, sweep
from training.engine.resumable import config_of, note_model
from training.report.summary import ENVIRONMENT, read_lines, show, write_summary
from training.setup.chat_template import TEMPLATE
from training.setup.plan import Plan
from training.setup.reading import changed_reading, choose_reading
from training.start.make_plan import RECORD_FILES

if TYPE_CHECKING:
    from agentlightning import LitAgent, Trainer

    from training.engine.algorithm import Outcome

EXIT_CODES = {"done": 0, "failed": 1, "interrupted": 130}
DEADLINE_MARGIN_SECONDS = 30.0
PACKAGES = (
    "agentlightning",
    "verl",
    "vllm",
    "torch",
    "transformers",
    "ray",
    "litellm",
    "openai-agents",
)


def run(agent: LitAgent[Any], config: DictConfig, plan: Plan, started: float) -> int:
    """Play this process's role to its end and return the exit code. `started` is the program's
    start in Unix seconds.

    Plan and config have passed `training.start.check.check_ready`.

    Raises ConfigError if the model's chat template cannot be used as the plan wants it.
    """
    if plan.store.role == "runner":
        print(
            f"{plan.store.n_runners} runners work for the store "
            f"at {plan.store.address}; Ctrl-C stops them",
            flush=True,
        )
        trainer = _trainer(plan, None)
        trainer.fit(agent)
        return EXIT_CODES["failed" if trainer.strategy.failed else "interrupted"]
    template = choose_reading(plan.engine, plan.output.run_dir, config)
    if config.trainer.resume_mode == "resume_path":
        before = config_of(Path(config.trainer.resume_from_path), config)
        for line in changed_reading(config, before):
            print(line, flush=True)
    prepare_run_dir(plan, config)
    if template is not None:
        (plan.output.run_dir / TEMPLATE).write_text(template, encoding="utf-8")
    _log_to_file(plan)
    from training.engine.algorithm import BEFORE, Outcome, VerlAlgorithm

    algorithm = VerlAlgorithm(plan, config)
    trainer = _trainer(plan, algorithm)
    try:
        trainer.fit(agent)
    except (Exception, SystemExit) as error:
        began = algorithm.outcome is not BEFORE
        if algorithm.outcome.exit_reason == "done" or (not began and isinstance(error, Exception)):
            message = f"{type(error).__name__}: {error}"
            algorithm.outcome = Outcome("failed", message, traceback.format_exc())
    return _finish(plan, algorithm.outcome, started)


def _finish(plan: Plan, outcome: Outcome, started: float) -> int:
    """Write and show how the run ended, and return the exit code; if the disk is full, only show
    it.
    """
    try:
        if outcome.details:
            (plan.output.run_dir / "error.txt").write_text(outcome.details, encoding="utf-8")
        about = {
            "device": plan.engine.device,
            "model": plan.engine.model,
            "store": "external" if plan.store.external_address else "managed",
        }
        reason = outcome.exit_reason
        summary = write_summary(plan.output.run_dir, about, reason, outcome.message, started)
    except OSError:
        print(f"{outcome.exit_reason}: {outcome.message}", file=sys.stderr)
        raise
    show(summary, plan.output.run_dir)
    return EXIT_CODES[outcome.exit_reason]


def with_token(plan: Plan) -> Plan:
    """Return the plan with a token of this run alone if AGL_TOKEN is not set; processes started
    from here inherit it.

    The plan has passed `training.store.store_checks.check_store`, which refuses to go on where
    others have to know the token.
    """
    token = plan.store.token or secrets.token_urlsafe(32)
    os.environ[TOKEN] = token
    load_settings.cache_clear()
    return replace(plan, store=replace(plan.store, token=token))


def write_inputs(
    plan: Plan, rows: Mapping[str, Iterable[Any]], described: Mapping[str, Any] | None
) -> None:
    """Write the rows as trained on into the run's folder, which only a process that trains does,
    and what scores depend on, which one that plays knows.
    """
    plan.output.run_dir.mkdir(parents=True, exist_ok=True)
    if described is not None:
        text = json.dumps(described, ensure_ascii=False)
        write_text(plan.output.run_dir / ENVIRONMENT, text, force=True)
    if plan.store.role != "runner":
        (plan.output.run_dir / "data").mkdir(exist_ok=True)
        for name, part in rows.items():
            write_jsonl(plan.output.run_dir / "data" / f"{name}.jsonl", part, force=True)


def prepare_run_dir(plan: Plan, config: DictConfig) -> None:
    """Make the run folder and write the run's configuration into it; files of an earlier part of a
    resumed run are kept aside.

    The records go on, with the lines up to the checkpoint.
    """
    plan.output.run_dir.mkdir(parents=True, exist_ok=True)
    if left := sweep(plan.output.run_dir):  # safe now: no other run uses this one's ports
        print(f"removed what was not completely saved or removed: {', '.join(left)}", flush=True)
    checkpoint = (
        Path(config.trainer.resume_from_path)
        if config.trainer.resume_mode == "resume_path"
        else None
    )
    goes_on = checkpoint is not None and run_of(checkpoint) == plan.output.run_dir
    for name in (
        *(() if goes_on else RECORD_FILES),
        "timeline.json",
        "summary.json",
        "error.txt",
        "config.yaml",
    ):
        if (plan.output.run_dir / name).exists():
            (plan.output.run_dir / name).rename(_aside(plan.output.run_dir / name))
    if checkpoint is not None:
        for name in RECORD_FILES:
            continue_records(
                run_of(checkpoint) / name, plan.output.run_dir / name, step_of(checkpoint)
            )
    OmegaConf.save(config, plan.output.run_dir / "config.yaml", resolve=True)
    versions = {
        name: next((found.version for found in distributions(name=name)), None) for name in PACKAGES
    }
    (plan.output.run_dir / "versions.json").write_text(json.dumps(versions, indent=2))
    if not goes_on:
        note_model(plan.output.run_dir, plan.engine.model)
    (plan.output.run_dir / "preset.json").write_text(json.dumps(plan.output.preset, indent=2))


def continue_records(source: Path, path: Path, step: int) -> None:
    """Write the lines of `source` up to a step to `path`. If the file itself goes on, the undone
    lines are kept aside.
    """
    lines = read_lines(source)
    undone = [line for line in lines if line["step"] > step]
    if undone and source == path:
        write_jsonl(_aside(path), undone, force=False)
    write_jsonl(path, (line for line in lines if line["step"] <= step), force=True)


def _aside(path: Path) -> Path:
    paths = (path.with_name(f"{path.stem}.{number}{path.suffix}") for number in count(1))
    return next(path for path in paths if not path.exists())


def _trainer(plan: Plan, algorithm: Any) -> Trainer:
    """Return agent-lightning's Trainer for this role; its runners are processes, its store is
    reached over HTTP.

    The algorithm serves a managed store itself, and itself judges what a runner's end means.
    """
    import agentlightning as agl

    from training.runners.episode_runner import EpisodeRunner
    from training.runners.processes import KeptRunners
    from training.runners.tracing import ProxyTraceToTriplet
    from training.store.store_client import StoreClient

    runner = EpisodeRunner(plan.store.concurrency, deadline_of(plan.engine.episode_timeout))
    return agl.Trainer(
        algorithm=algorithm,
        n_runners=plan.store.n_runners,
        tracer=runner.tracer,
        runner=runner,
        adapter=ProxyTraceToTriplet(),
        store=StoreClient(plan.store.address, plan.store.token),
        strategy=KeptRunners(plan.store.role, plan.store.n_runners),
    )


def deadline_of(episode_timeout: float) -> float:
    """Return the seconds after which a runner ends an episode that has no end."""
    return LONGEST * episode_timeout + DEADLINE_MARGIN_SECONDS


def _log_to_file(plan: Plan) -> None:
    """Write logs to `run.log`, runners' included; the screen shows progress only, or everything
    with --debug.
    """
    handlers: list[logging.Handler] = [
        logging.FileHandler(plan.output.run_dir / "run.log", encoding="utf-8")
    ]
    if plan.output.debug:
        handlers.append(logging.StreamHandler())
    form = "%(asctime)s %(processName)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(
        level=logging.DEBUG if plan.output.debug else logging.INFO,
        handlers=handlers,
        format=form,
        force=True,
    )
    # A log that cannot be written (full disk) must not fill the screen
    logging.raiseExceptions = False
    import uvicorn.config

    # It brings handlers of its own that write to the screen; without them its records reach the
    # file.
    uvicorn.config.LOGGING_CONFIG["loggers"] = {"uvicorn": {"handlers": [], "propagate": True}}
