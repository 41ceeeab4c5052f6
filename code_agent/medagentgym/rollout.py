"""Play every task several times and turn right episodes into training data. Flags of `main.py`,
and:

    .venv/bin/python code_agent/rollout.py --config_path my.yaml --mode train --num_rollouts 16 --async_run --n_jobs 16
    .venv/bin/python code_agent/rollout.py --config_path my.yaml --mode train --to-sft sft.jsonl --to-dpo pairs.jsonl

Writes history_<i>_<k>.json. --to-sft: the `messages` of right episodes, for `training.cold_start
--dialogues`. --to-dpo: pairs of a right and a wrong episode of one task (`prompt`, `chosen`,
`rejected`). Exit codes: 0 done, 1 failed or some episodes are not scored, 2 wrong usage, 130
interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

from code_agent.medagentgym.config import RunConfig, load_config, parser_of
from code_agent.medagentgym.histories import History, read_all
from code_agent.medagentgym.runs import played
from common.command import UsageError, positive, run_command
from common.files import refuse_existing
from common.jsonl import write_jsonl
from common.stopping import stop_in_order

ROLLOUTS = 16

Rows = Callable[[Iterable[History]], Iterator[dict[str, Any]]]


def sft_rows(histories: Iterable[History]) -> Iterator[dict[str, Any]]:
    """Yield the messages of right episodes without repetitions."""
    seen = set[str]()
    for history in histories:
        if history.succeeded and repr(history.messages) not in seen:
            seen.add(repr(history.messages))
            yield {"messages": history.messages, "task": history.index}


def dpo_rows(histories: Iterable[History]) -> Iterator[dict[str, Any]]:
    """Yield pairs of a right and a wrong episode of the same task, each episode once."""
    ordered = sorted(histories, key=lambda one: one.index)
    for index, group in groupby(ordered, key=lambda one: one.index):
        each = list(group)
        right = [one for one in each if one.succeeded]
        wrong = [one for one in each if not one.succeeded]
        for chosen, rejected in zip(right, wrong, strict=False):
            prompt = list(takewhile(lambda one: one["role"] != "assistant", chosen.messages))
            yield {
                "prompt": prompt,
                "chosen": chosen.messages[len(prompt) :],
                "rejected": rejected.messages[len(prompt) :],
                "task": index,
            }


def written(wanted: dict[Path, Rows], config: RunConfig) -> int:
    """Write training data from the finished episodes. Raises UsageError: none are of use."""
    for path in wanted:
        refuse_existing(path, force=False)
    histories = read_all(config.folder) if config.folder.is_dir() else []
    for path, rows_of in wanted.items():
        lines = list(rows_of(histories))
        if not lines:
            raise UsageError(
                f"{path} would be empty: {config.folder} has no right episode, or for --to-dpo no "
                "task with a right and a wrong one; play more with --num_rollouts"
            )
        write_jsonl(path, lines, force=False)
        print(f"{len(lines)} lines in {path}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = parser_of(__doc__)
    add = parser.add_argument
    count = f"episodes of a task; default: {ROLLOUTS}"
    add("--num_rollouts", dest="rollouts", type=positive(int), default=ROLLOUTS, help=count)
    add("--to-sft", type=Path, metavar="FILE", help="play nothing; write right episodes")
    pairs = "play nothing; write pairs of right and wrong ones"
    add("--to-dpo", type=Path, metavar="FILE", help=pairs)
    arguments = parser.parse_args(argv)
    stop_in_order()
    wanted: dict[Path, Rows] = {}
    if arguments.to_sft:
        wanted[arguments.to_sft] = sft_rows
    if arguments.to_dpo:
        wanted[arguments.to_dpo] = dpo_rows

    def body() -> int:
        config = load_config(arguments, calls=not wanted)
        return written(wanted, config) if wanted else played(config)

    return run_command("rollout", body, afterwards="the same command goes on from here")


if __name__ == "__main__":
    sys.exit(main())
