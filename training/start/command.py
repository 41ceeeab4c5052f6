"""Train an agent, one of yours included.

    .venv/bin/python -m training.launch sql --ci-fast    # one step on this machine, to see it work
    .venv/bin/python -m training.launch sql --help       # all flags

Further key=value and +key=value go to verl. Exit codes: 0 done, 1 failed, 2 wrong usage, 130
interrupted.
"""

import argparse
import os
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from psutil import Process

from common.command import as_typed, new_parser, run_command
from common.files import check_temporary
from common.jsonl import read_object
from common.language import said
from common.settings import Settings
from common.startup import collect_rarely
from common.stopping import stop_in_order
from episodes import registry
from episodes.agent import Agent, Options
from episodes.episode import AgentError
from episodes.play_and_score import tasks_of
from training.cpu.fork_server import forking
from training.engine.checkpoints import was_validated
from training.report.summary import HIGHEST
from training.serve import serve_environment
from training.setup.device import environment
from training.setup.plan import ConfigError, Plan
from training.setup.verl_config import build_config, parse_overrides
from training.start.arguments import parse
from training.start.check import check_ready, steps_of
from training.start.make_plan import (
    continued,
    make_plan,
    read_rows,
    run_settings,
    with_runners,
    with_token,
)
from training.start.prepare import Rows, prepare
from training.start.run_folder import held, write_inputs

STARTED = Process().create_time()
SEVERAL = ".venv/bin/python train_agents.py --agents NAME,NAME:2 [flags]; --help beside --agents lists them"


def train(agent: Agent, options: argparse.Namespace) -> int:
    """Make the plan, let the engine be imported beside the checks, and train."""
    check_temporary()
    plan, preset = make_plan(agent, options)
    with forking(plan.engine.device, plan.store.role) as python:
        plan = replace(plan, engine=replace(plan.engine, python=python))
        return check_and_train(agent, options, plan, preset)


def check_and_train(
    agent: Agent, options: argparse.Namespace, plan: Plan, preset: dict[str, Any]
) -> int:
    """Check everything that is cheap to check, then train and return the exit code."""
    settings, flags = run_settings(agent, options)
    plan, checkpoint, keys = continued(plan, options)
    files = {"train": Path(options.train_file), "val": Path(options.val_file)}
    rows, keys_of_rows = read_rows(agent, files)
    check_budgets(agent, rows, settings)
    written = {name: str(plan.output.run_dir / "data" / f"{name}.jsonl") for name in rows}
    overrides = parse_overrides(options.overrides)
    keys = {**preset, **keys, **keys_of_rows}
    config = build_config(plan.engine, plan.output.run_dir, written, keys, overrides)
    plan = with_runners(plan, options, config)
    done, last = steps_of(config, rows["train"], checkpoint)
    config.trainer.total_training_steps = last  # after which verl saves and validates
    if checkpoint and done >= last:
        summary = read_object(plan.output.run_dir / "summary.json")  # none if killed before it
        if config.trainer.test_freq > 0 and not was_validated(checkpoint):
            config.trainer.val_before_train = True  # all that is left to do
        elif options.resume == "auto" and summary.get("exit_reason") == "done":
            finished = "{run} is finished: step {done} of {last}; nothing is left to do"
            print(said(finished, run=plan.output.run_dir, done=done, last=last), flush=True)
            return 0
    check_ready(plan, config, done, last)
    plan = with_token(plan)
    with nullcontext() if plan.store.role == "runner" else held(plan.output.run_dir):
        return start(agent, flags, settings, config, plan, rows, last)


def start(
    agent: Agent, flags: Options, settings: Settings, config: Any, plan: Plan, rows: Rows, last: int
) -> int:
    """Start what episodes need, prepare and write the rows, and train to step `last`."""
    plays = plan.store.role != "algorithm"
    device = plan.engine.device if plays else None
    with serve_environment(agent, settings, flags, plan.output.run_dir / "logs", device) as served:
        with closing(agent.open(settings, served)) if plays else nullcontext() as opened:
            prepare(agent, rows, settings, flags, opened, config)
            described = None
            if opened is not None:
                described = {**opened.description(), HIGHEST: opened.highest}
        write_inputs(plan, rows, described)
        os.environ.update(environment(plan.engine.device))  # before the imports that read it
        turns = (settings.min_turns or plan.engine.max_turns, plan.engine.max_turns)
        return run(agent, served, turns, config, plan, last)


def run(
    agent: Agent, served: Options, turns: tuple[int, int], config: Any, plan: Plan, last: int
) -> int:
    """Import the engine, which takes seconds, run, and return the exit code."""
    player = import_module("episodes.lit_agent").EpisodeAgent(agent, served, turns)
    return int(import_module("training.start.run").run(player, config, plan, last, STARTED))


def check_budgets(agent: Agent, rows: Rows, settings: Settings) -> None:
    """Raise ConfigError if a task has a larger budget than the run, AgentError if a row makes no task."""
    for part in rows.values():
        for task in tasks_of(agent, part, settings):
            if task.max_turns and task.max_turns > settings.max_turns:
                raise ConfigError(
                    f"task {task.id} has a budget of {task.max_turns} turns, the run one of"
                    f" {settings.max_turns}; raise --max-turns"
                )


def main(name: str, arguments: list[str] | None = None) -> int:
    return run_training(lambda: registry.get(name), arguments)


def run_training(make: Callable[[], Agent], arguments: list[str] | None) -> int:
    """Run the training command of the agent that `make` returns, and return the exit code."""
    stop_in_order()

    def body() -> int:
        collect_rarely()
        agent = make()
        options = parse(agent, arguments)
        agent.complete(options)
        return train(agent, options)

    return run_command("error", body)


def main_of_any(words: list[str]) -> int:
    """Run the training command of the agent that the first word names, and return the exit code."""
    parser = new_parser(__doc__, usage="%(prog)s AGENT [flags]")
    listing = f"{', '.join(registry.names())}; AGENT --help lists the flags"
    parser.add_argument("agent", metavar="AGENT", help=listing)
    if not words or words[0].startswith("-"):
        parser.parse_args(words[:1])  # shows the help, or what is missing
    return main(words[0], words[1:])


def main_of_several(arguments: list[str] | None = None) -> int:
    """Run the training command of the agents of --agents, and return the exit code."""
    usage = as_typed(SEVERAL)
    parser = argparse.ArgumentParser(usage=usage, add_help=False, allow_abbrev=False)
    parser.add_argument("--agents", required=True)
    named, rest = parser.parse_known_args(arguments)
    return run_training(lambda: registry.joined(weights(named.agents)), rest)


def weights(text: str) -> dict[str, float]:
    """Return the weights of a text such as "sql,diagnosis:2". Raises AgentError: another form."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, colon, number = part.strip().partition(":")
        try:
            weight = float(number) if colon else 1.0
        except ValueError:
            weight = 0.0
        if not name or name in found or not 0 < weight < float("inf"):
            raise AgentError(
                f"{part!r}: expected each agent once, NAME or NAME:WEIGHT with a weight above 0"
            )
        found[name] = weight
    return found
