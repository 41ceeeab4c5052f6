"""One entry to the engine room: store, roles, runners and trainer, up to `summary.json`.

It imports agent-lightning, which takes seconds.
"""

import json
import logging
import shlex
import sys
import traceback
from pathlib import Path

import agentlightning as agl
import uvicorn.config
from omegaconf import DictConfig

from common.jsonl import write_text
from common.language import said
from episodes.agent import Agent, folder_of
from episodes.lit_agent import EpisodeAgent
from episodes.words import words_of
from training.engine.algorithm import BEFORE, Outcome, VerlAlgorithm
from training.engine.checkpoints import latest_checkpoint, step_of
from training.report.summary import build_summary, show
from training.runners.episode_runner import EpisodeRunner
from training.runners.processes import KeptRunners
from training.setup.chat_template import TEMPLATE
from training.setup.plan import Plan
from training.setup.reading import choose_reading
from training.start.run_folder import prepare_run_dir
from training.store.store_client import StoreClient

EXIT_CODES = {"done": 0, "failed": 1, "interrupted": 130}
DEADLINE_MARGIN_SECONDS = 30.0


def run(agent: EpisodeAgent, config: DictConfig, plan: Plan, last: int, started: float) -> int:
    """Play this process's role to its end and return the exit code.

    `last` is the last step's number, `started` the program's start in Unix seconds.
    """
    if plan.store.role == "runner":
        work = f"{plan.store.n_runners} runners work for the store at {plan.store.address}"
        print(f"{work}; Ctrl-C stops them", flush=True)
        trainer = _trainer(plan, None)
        trainer.fit(agent)
        return EXIT_CODES["failed" if trainer.strategy.failed else "interrupted"]
    template = choose_reading(plan.engine, plan.output.run_dir, config)
    prepare_run_dir(plan, config)
    if template is not None:
        (plan.output.run_dir / TEMPLATE).write_text(template, encoding="utf-8")
    _log_to_file(plan)
    algorithm = VerlAlgorithm(plan, config, last, started)
    try:
        _trainer(plan, algorithm).fit(agent)
    except (Exception, SystemExit) as error:
        # Of a training that failed or was interrupted, its own outcome says more
        failed_to_begin = algorithm.outcome is BEFORE and isinstance(error, Exception)
        failed_to_end = algorithm.outcome.exit_reason == "done"
        if failed_to_begin or failed_to_end:
            message = f"{type(error).__name__}: {error}"
            algorithm.outcome = Outcome("failed", message, traceback.format_exc())
    return _finish(agent.agent, plan, algorithm.outcome, started)


def _finish(agent: Agent, plan: Plan, outcome: Outcome, started: float) -> int:
    """Write and show how the run ended. If the disk is full, only show it."""
    try:
        if outcome.details:
            (plan.output.run_dir / "error.txt").write_text(outcome.details, encoding="utf-8")
        about = {
            "device": plan.engine.device,
            "model": plan.engine.model,
            "store": "external" if plan.store.external_address else "managed",
        }
        summary = build_summary(
            plan.output.run_dir, about, outcome.exit_reason, outcome.message, started
        )
        text = json.dumps(summary, ensure_ascii=False, indent=2)
        write_text(plan.output.run_dir / "summary.json", text, force=True)
    except OSError:
        print(f"{outcome.exit_reason}: {outcome.message}", file=sys.stderr)
        raise
    if outcome.exit_reason == "interrupted":
        summary["message"] = _how_to_go_on(plan.output.run_dir)  # in this reader's language
    show(summary, plan.output.run_dir, words_of(folder_of(agent)).chinese)
    return EXIT_CODES[outcome.exit_reason]


def _how_to_go_on(run_dir: Path) -> str:
    # As --run-dir is read: from the folder one is in
    here = run_dir.absolute()
    place = here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here
    folder = shlex.quote(str(place))
    checkpoint = latest_checkpoint(run_dir)
    if checkpoint is None:
        told = (
            "no checkpoint was saved yet: the same command with --run-dir {folder} --resume auto "
            "begins again"
        )
        return said(told, folder=folder)
    told = (
        "the last checkpoint is of step {step}: the same command with --run-dir {folder} "
        "--resume auto goes on from it"
    )
    return said(told, step=step_of(checkpoint), folder=folder)


def _trainer(plan: Plan, algorithm: VerlAlgorithm | None) -> agl.Trainer:
    runner = EpisodeRunner(plan.store.concurrency, deadline_of(plan.engine.episode_timeout))
    return agl.Trainer(
        algorithm=algorithm,
        n_runners=plan.store.n_runners,
        tracer=runner.tracer,
        runner=runner,
        store=StoreClient(plan.store.address, plan.store.token),
        strategy=KeptRunners(plan.store.role, plan.store.n_runners),
    )


def deadline_of(episode_timeout: float) -> float:
    """Return the seconds after which a runner ends an episode that has no end."""
    return episode_timeout + DEADLINE_MARGIN_SECONDS


def _log_to_file(plan: Plan) -> None:
    log = plan.output.run_dir / "run.log"
    handlers: list[logging.Handler] = [logging.FileHandler(log, encoding="utf-8")]
    if plan.output.debug:
        handlers.append(logging.StreamHandler())
    logging.basicConfig(
        level=logging.DEBUG if plan.output.debug else logging.INFO,
        handlers=handlers,
        format="%(asctime)s %(processName)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )
    # A log that cannot be written (full disk) must not fill the screen
    logging.raiseExceptions = False
    # uvicorn brings handlers of its own that write to the screen
    uvicorn.config.LOGGING_CONFIG["loggers"] = {"uvicorn": {"handlers": [], "propagate": True}}
