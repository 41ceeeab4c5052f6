"""Prepare rows for training: draft missing answers, check gold, and prove that the judge tells
honest answers from dishonest ones.
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from common.command import Failure
from common.settings import Settings
from episodes.agent import Agent, Environment, Options, Row
from episodes.episode import Task
from episodes.joint import environment_of
from episodes.judge_probe import check_judge, problem_of
from episodes.play_and_score import tasks_of
from training.setup.plan import ConfigError

Rows = dict[str, list[Row]]
TOTAL = "reward"  # verl's name of it; other metrics are terms


def prepare(
    agent: Agent,
    rows: Rows,
    settings: Settings,
    options: Options,
    environment: Environment | None,
    config: Any,
) -> None:
    """Draft missing answers in the rows, show the agent's notes, and ask the judge about the tasks.

    environment: None where episodes are played elsewhere: no judge is asked. config: verl's. Raises
    AgentError: the rows cannot be trained on. Raises ConfigError: rewards lack the term that groups
    are filtered by. Raises Failure: what episodes need does not answer, or the judge pays dishonest
    answers and JUDGE_CHECK is on.
    """
    for note in agent.check(rows, settings, options, environment is not None):
        print(note, flush=True)
    if environment is None:
        return
    tasks = tasks_of(agent, rows["train"], settings)
    groups = config.algorithm.get("filter_groups")
    metric = groups.metric if groups and groups.enable else TOTAL
    problem = asyncio.run(judge_problem(environment, tasks, metric))
    if problem and settings.judge_check:
        raise Failure(f"the judge cannot be trained on: {problem}; JUDGE_CHECK=0 goes on")
    if problem:
        text = f"WARNING: the judge cannot be trained on, and JUDGE_CHECK=0: {problem}"
        print(text, file=sys.stderr, flush=True)


async def judge_problem(environment: Environment, tasks: Sequence[Task], metric: str) -> str | None:
    """Return what is wrong with the judge, of each agent where several are trained together."""
    by_agent: dict[str, list[Task]] = {}
    for task in tasks:
        by_agent.setdefault(task.agent, []).append(task)
    found = []
    for name, own in by_agent.items():
        probed = await check_judge(environment_of(environment, own[0]), own)
        for probe in probed:
            surest = next(iter(probe.honest.values()))
            known = [TOTAL, *surest.terms]
            if metric not in known:
                expected = f"expected one of {', '.join(known)}"
                raise ConfigError(f"algorithm.filter_groups.metric={metric}: {expected}")
        problem = problem_of(probed)
        if problem:
            found.append(f"{name}: {problem}" if name else problem)
    return "\n".join(found) or None
