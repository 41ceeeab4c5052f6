"""Prepare rows for training: draft missing answers, check gold, and prove that the judge tells
honest answers from dishonest ones.

    .venv/bin/python -m training.prepare sql                          # what a training command does first
    .venv/bin/python -m training.prepare sql --train-file my.parquet  # flags as for training

Exit codes: 0 prepared, 1 the judge cannot be trained on or does not answer, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from common.command import Failure, new_parser, run_command
from common.settings import WORK, Settings, load_settings
from common.stopping import stop_in_order
from episodes import registry
from episodes.agent import Agent, Environment, Options, Row
from episodes.episode import Task
from episodes.judge_probe import check_judge, problem_of
from episodes.turns import with_turns
from training.serve import serve_environment

Rows = dict[str, list[Row]]


def prepare(
    agent: Agent, rows: Rows, settings: Settings, options: Options, environment: Environment
) -> Rows:
    """Return rows with drafted answers, after agent and judge were asked about them.

    Raises AgentError: they cannot be trained on. Raises Failure: what episodes need does not
    answer, or the judge pays dishonest answers and JUDGE_CHECK is on.
    """
    rows = complete(agent, rows, settings, options)
    tasks = [agent.task(row, settings) for row in rows["train"]]
    problem = asyncio.run(judge_problem(environment, tasks))
    if problem and settings.judge_check:
        raise Failure(f"the judge cannot be trained on: {problem}; JUDGE_CHECK=0 goes on")
    if problem:
        text = f"WARNING: the judge cannot be trained on, and JUDGE_CHECK=0: {problem}"
        print(text, file=sys.stderr, flush=True)
    return rows


async def judge_problem(environment: Environment, tasks: Sequence[Task]) -> str | None:
    """Return what is wrong with the judge, of each agent where several are trained together."""
    by_agent: dict[str, list[Task]] = {}
    for task in tasks:
        by_agent.setdefault(task.agent, []).append(task)
    found = [problem_of(await check_judge(environment, own)) for own in by_agent.values()]
    return "\n".join(problem for problem in found if problem) or None


def complete(
    agent: Agent, rows: Rows, settings: Settings, options: Options, plays: bool = True
) -> Rows:
    """Return the rows with drafted answers, and show the agent's notes. No judge is asked.

    `plays` is False where episodes are played elsewhere.
    """
    for note in agent.check(rows, settings, plays):
        print(note, flush=True)
    for name, part in rows.items():
        tasks = [agent.task(row, settings) for row in part]
        for note in agent.flags.check(tasks, options):
            print(f"{name}: {note}", flush=True)
    return rows


def parse_arguments(argv: Sequence[str] | None) -> tuple[Agent, argparse.Namespace]:
    parser = new_parser(__doc__)
    registry.add_agent(parser, argv)
    for split in ("train", "val"):
        what = f"default: the agent's {split} file"
        parser.add_argument(f"--{split}-file", type=Path, metavar="FILE", help=what)
    arguments = parser.parse_args(argv)
    return registry.get(arguments.agent), arguments


def run(agent: Agent, arguments: argparse.Namespace) -> None:
    agent.flags.complete(arguments)
    options = registry.own_options(agent, arguments)
    settings = with_turns(agent, load_settings()).under(options)
    given = {"train": arguments.train_file, "val": arguments.val_file}
    rows = {name: agent.rows(path or agent.splits[name]) for name, path in given.items()}
    folder = WORK / "outputs" / "prepare"
    with (
        serve_environment(agent, settings, options, folder) as served,
        closing(agent.open(settings, served)) as environment,
    ):
        prepare(agent, rows, settings, options, environment)
    print("the rows can be trained on")


def main(argv: Sequence[str] | None = None) -> int:
    stop_in_order()
    return run_command("prepare", lambda: run(*parse_arguments(argv)))


if __name__ == "__main__":
    sys.exit(main())
