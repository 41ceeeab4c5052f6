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

import argparse
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

from code_agent.medagentgym.config import load_config, parser_of
from code_agent.medagentgym.histories import History, read_all
from code_agent.medagentgym.runs import played
from common.command import UsageError, positive, run_command
from common.jsonl import write_jsonl
from common.stopping import stop_in_order

ROLLOUTS = 16


def sft_rows(histories: Iterable[History]) -> list[dict[str, Any]]:
    """Return the messages of right episodes without repetitions."""
    right = {repr(one.messages): one for one in histories if one.succeeded}
    return [{"messages": one.messages, "task": one.index} for one in right.values()]


def dpo_rows(histories: Iterable[History]) -> list[dict[str, Any]]:
    """Return pairs of a right and a wrong episode of the same task, each episode once."""
    rows = []
    for index, group in groupby(histories, key=lambda one: one.index):
        each = list(group)
        right = [one for one in each if one.succeeded]
        wrong = [one for one in each if not one.succeeded]
        for chosen, rejected in zip(right, wrong, strict=False):
            prompt = list(takewhile(lambda one: one["role"] != "assistant", chosen.messages))
            sides = {
                "chosen": chosen.messages[len(prompt) :],
                "rejected": rejected.messages[len(prompt) :],
            }
            rows.append({"prompt": prompt, **sides, "task": index})
    return rows


def run(arguments: argparse.Namespace) -> int:
    """Play, or write training data. Return the exit code. Raises UsageError: no episode is of use."""
    config = load_config(arguments)
    if not (arguments.to_sft or arguments.to_dpo):
        return played(config)
    histories = read_all(config.folder) if config.folder.is_dir() else []
    for path, rows_of in ((arguments.to_sft, sft_rows), (arguments.to_dpo, dpo_rows)):
        if not path:
            continue
        rows = rows_of(histories)
        if not rows:
            raise UsageError(
                f"{path} would be empty: {config.folder} has no right episode, or for --to-dpo no "
                "task with a right and a wrong one; play more with --num_rollouts"
            )
        write_jsonl(path, rows, force=False)
        print(f"{len(rows)} lines in {path}")
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
    goes_on = "the same command goes on from here"
    return run_command("rollout", lambda: run(arguments), afterwards=goes_on)


if __name__ == "__main__":
    sys.exit(main())
