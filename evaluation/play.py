"""Play an agent's tasks yourself: you are the policy, and read what it earned.

    .venv/bin/python -m evaluation.play sql                                    # a task drawn from the test file
    .venv/bin/python -m evaluation.play consultation --task 12
    .venv/bin/python -m evaluation.play code --n 5 < replies.txt

What you read is what a model reads (docs/evaluate-and-serve.md). Exit codes: 0 done, 1 the input
ended, something failed or has no score, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

from common.command import Failure, UsageError, new_parser, positive, run_command
from common.language import said
from common.settings import WORK, Settings, load_settings
from episodes import registry
from episodes.agent import Agent, Environment
from episodes.episode import Scored, Task
from episodes.play_and_score import play
from episodes.turns import turns, turns_of, with_turns
from evaluation.keyboard import KeyboardPolicy, show
from evaluation.players import opened_environment

LOGS = WORK / "outputs" / "play"
A_DAY = 86_400.0  # a person may think; what the machine does has limits of its own


def parse_arguments(argv: Sequence[str] | None) -> tuple[Agent, argparse.Namespace]:
    """Return the agent, which is read first because it adds flags, and the flags."""
    parser = new_parser(__doc__)
    registry.add_agent(parser, argv)
    add = parser.add_argument
    add("--task", metavar="ID", help="this one; default: drawn by --seed")
    add("--n", type=positive(int), default=1, help="tasks to draw; default: 1")
    add("--seed", type=int, help="of the draw; default: another one each time")
    add("--data", type=Path, help="default: the agent's test file")
    add("--max-turns", type=turns, metavar="N|A-B", help="default: MAX_TURNS, else the agent's own")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="of a model served here")
    arguments = parser.parse_args(argv)
    return registry.get(arguments.agent), arguments


def choose_tasks(agent: Agent, arguments: argparse.Namespace, settings: Settings) -> list[Task]:
    """Return the tasks to play. Raises UsageError: no task has the id that --task names, or they
    are not of this database.
    """
    file = arguments.data or agent.splits["test"]
    rows = agent.rows(file)
    own = registry.own_options(agent, arguments)
    for note in agent.check({file.name: rows}, settings, own):
        print(note)
    if arguments.task is None:
        drawn = Random(arguments.seed).sample(rows, min(arguments.n, len(rows)))
        return [agent.task(row, settings) for row in drawn]
    found = [row for row in rows if str(row["id"]) == arguments.task]
    if not found:
        some = ", ".join(str(row["id"]) for row in rows[:3])
        raise UsageError(
            f"{file} has no task {arguments.task!r}; expected "
            f"one of its {len(rows)} ids, such as {some}"
        )
    return [agent.task(found[0], settings)]


async def play_all(
    agent: Agent, tasks: Sequence[Task], environment: Environment, settings: Settings
) -> int:
    """Play one after the other. Return how many have no score."""
    unscored = 0
    for task in tasks:
        budget = turns_of(task, settings)
        policy = KeyboardPolicy(budget)
        show(f"task {task.id}", f"{agent.name}, {task.difficulty}")
        scored = await play(environment, task, environment.play(task, policy), policy, A_DAY)
        policy.show_rest(scored.episode.messages)
        show("end", "\n".join(outcome(scored, environment.highest)))
        unscored += scored.reward.total is None
    return unscored


def outcome(scored: Scored, highest: float) -> list[str]:
    """Return lines that say how the episode ended and what it earned."""
    reward = scored.reward
    ended = said("stop reason: {reason}", reason=scored.episode.stop_reason)
    lines = [ended, said("type: {kind}", kind=scored.task.task_type)]
    if scored.task.reference:
        lines.append(said("gold: {answer}", answer=scored.task.reference))
    if reward.total is None:
        none = "reward: none, {cause}: {detail}"
        return [*lines, said(none, cause=reward.unscored, detail=scored.detail)]
    numbers = {**reward.terms, **{f"({name})": value for name, value in reward.measures.items()}}
    lines += [f"  {name:<24}{value:>z8.3f}" for name, value in numbers.items()]
    total = "reward: {reward:z.3f} of {highest:.3f}"
    return [*lines, said(total, reward=reward.total, highest=highest)]


def main(argv: Sequence[str] | None = None) -> int:
    # Ctrl-C must end the waiting for a key: asyncio replaces Python's own handler, and leaves
    # others alone.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, partial(signal.default_int_handler))
    if sys.stdin.isatty():
        import readline  # noqa: F401 (input() takes its line editing)

    def body() -> None:
        settings = load_settings()
        agent, arguments = parse_arguments(argv)
        settings = with_turns(agent, settings, arguments.max_turns)
        tasks = choose_tasks(agent, arguments, settings)
        own = registry.own_options(agent, arguments)
        with opened_environment(agent, own, LOGS, settings, arguments.device) as environment:
            unscored = asyncio.run(play_all(agent, tasks, environment, settings))
        if unscored:
            raise Failure(f"{unscored} of {len(tasks)} episodes have no score")

    return run_command("play", body)


if __name__ == "__main__":
    sys.exit(main())
