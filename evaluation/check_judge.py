"""Whether an agent's judge tells honest answers from dishonest ones, as every training run asks
before it starts.

    .venv/bin/python -m evaluation.check_judge sql                # a table, then what is wrong with the judge
    .venv/bin/python -m evaluation.check_judge sql --data my.parquet --sample 50

The judge is that of the settings. docs/rewards.md tells what is asked and has the table. Exit
codes: 0 fine, 1 the judge does not pass or does not answer, 2 wrong usage.
"""

import argparse
import asyncio
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from common.command import new_parser, positive, run_command
from common.settings import WORK, load_settings
from episodes import registry
from episodes.agent import Agent, accepted_from
from episodes.judge_probe import GOOD, TASKS, Probed, check_judge, problem_of
from episodes.play_and_score import tasks_of
from episodes.turns import with_turns
from evaluation.players import opened_environment
from evaluation.tables import table
from scoring.rubric import Reward

LOGS = WORK / "outputs" / "check_judge"
HEADER = ("answer", "honest", "tasks", "judge", "reward", "accepted from", "accepted")


def parse_arguments(argv: Sequence[str] | None) -> tuple[Agent, argparse.Namespace]:
    parser = new_parser(__doc__)
    registry.add_agent(parser, argv)
    parser.add_argument("--data", type=Path, help="default: the agent's training file")
    most = f"tasks, at most; default: {TASKS}, and few with a judge that costs money or time"
    parser.add_argument("--sample", type=positive(int), default=TASKS, metavar="N", help=most)
    arguments = parser.parse_args(argv)
    return registry.completed(arguments, "train"), arguments


def rows_of(probed: Sequence[Probed]) -> list[Sequence[str]]:
    """Return the table of what each kind earns on average, honest ones first, then the best paid."""
    found: dict[tuple[str, str, float], list[Reward]] = defaultdict(list)
    for one in probed:
        for kind, reward in one.honest.items():
            found[kind, "yes", GOOD].append(reward)
        for kind, reward in one.dishonest.items():
            found[kind, "no", accepted_from(kind)].append(reward)
    rows = []
    for (kind, honest, bound), rewards in found.items():
        score = fmean(one.score or 0 for one in rewards)
        total = fmean(one.total or 0 for one in rewards)
        shares = [score, total, bound, fmean(one.worth >= bound for one in rewards)]
        rows.append((kind, honest, str(len(rewards)), *(f"{share:.2f}" for share in shares)))
    return [HEADER, *sorted(rows, key=lambda row: (row[1] == "no", -float(row[4])))]


def check(agent: Agent, arguments: argparse.Namespace) -> int:
    """Ask, print what was found, and return the exit code."""
    settings = with_turns(agent, load_settings())
    rows = agent.rows(arguments.data)
    options = registry.own_options(agent, arguments)
    print("\n".join(agent.check({"train": rows}, settings, options)), file=sys.stderr)
    tasks = tasks_of(agent, rows, settings)
    with opened_environment(agent, options, LOGS, settings, "auto") as environment:
        probed = asyncio.run(check_judge(environment, tasks, arguments.sample))
    problem = problem_of(probed)
    print("\n".join(table(rows_of(probed))))
    print(problem or f"{len(probed)} tasks: nothing wrong", file=sys.stderr)
    return 1 if problem else 0


def main(argv: Sequence[str] | None = None) -> int:
    return run_command("check_judge", lambda: check(*parse_arguments(argv)))


if __name__ == "__main__":
    sys.exit(main())
