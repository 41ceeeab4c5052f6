"""Play every task several times and turn right episodes into data to learn from. The command line
is that of `main.py` with further flags.

    python code_agent/rollout.py --config_path my.yaml --mode train --num_rollouts 16 --async_run --n_jobs 16
    python code_agent/rollout.py --config_path my.yaml --mode train --to-sft sft.jsonl --to-dpo pairs.jsonl

Writes history_<i>_<k>.json. --to-sft: right episodes, a line of `messages` each, for
`training.cold_start --dialogues`. --to-dpo: pairs of a right and a wrong episode of one task:
`prompt`, `chosen`, `rejected`. Exit codes: 0 done, 1 failed or some episodes are not scored, 2
wrong usage, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from code_agent.medagentgym.config import load_config, parser_of
from code_agent.medagentgym.histories import History, read_all
from common.command import UsageError, positive, run_command
from common.files import refuse_existing
from common.jsonl import write_jsonl
from common.stopping import stop_in_order

ROLLOUTS = 16


def sft_rows(histories: Iterable[History]) -> Iterator[dict[str, Any]]:
    """Yield the messages of right episodes, each wording of them once."""
    seen = set[str]()
    for history in histories:
        if history.succeeded and repr(history.messages) not in seen:
            seen.add(repr(history.messages))
            yield {"messages": history.messages, "task": history.index}


def dpo_rows(histories: Iterable[History]) -> Iterator[dict[str, Any]]:
    """Yield each right episode of a task beside a wrong one of the same task, as many pairs as the
    rarer of the two allows.
    """
    tasks: dict[int, list[History]] = defaultdict(list)
    for history in histories:
        tasks[history.index].append(history)
    for index, each in sorted(tasks.items()):
        right = [one for one in each if one.succeeded]
        wrong = [one for one in each if not one.succeeded]
        for chosen, rejected in zip(right, wrong, strict=False):
            prompt = list(
                takewhile(lambda message: message["role"] != "assistant", chosen.messages)
            )
            pair = {
                "chosen": chosen.messages[len(prompt) :],
                "rejected": rejected.messages[len(prompt) :],
            }
            yield {"prompt": prompt, **pair, "task": index}


def write_data(folder: Path, sft: Path | None, dpo: Path | None) -> None:
    """Write the requested files.

    Raises UsageError if nothing was played yet, or a file would be empty.
    """
    histories = read_all(folder) if folder.is_dir() else []
    for path, rows, what in (
        (sft, sft_rows, "right episode"),
        (dpo, dpo_rows, "task with a right and a wrong episode"),
    ):
        if path:
            lines = list(rows(histories))
            if not lines:
                raise UsageError(
                    f"{path} would be empty: there is no {what} "
                    f"in {folder}; play more with --num_rollouts"
                )
            write_jsonl(path, lines, force=False)
            print(f"{len(lines)} lines in {path}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = parser_of(__doc__)
    add = parser.add_argument
    add(
        "--num_rollouts",
        type=positive(int),
        default=ROLLOUTS,
        help=f"episodes of a task; default: {ROLLOUTS}",
    )
    add("--to-sft", type=Path, metavar="FILE", help="play nothing; write right episodes")
    add(
        "--to-dpo",
        type=Path,
        metavar="FILE",
        help="play nothing; write pairs of right and wrong ones",
    )
    arguments = parser.parse_args(argv)
    stop_in_order()

    def body() -> int:
        from code_agent.medagentgym.runs import played

        wanted = [path for path in (arguments.to_sft, arguments.to_dpo) if path]
        for path in wanted:
            refuse_existing(path, force=False)
        config = load_config(arguments, calls=not wanted)
        if not wanted:
            return played(config)
        write_data(config.folder, arguments.to_sft, arguments.to_dpo)
        return 0

    return run_command("rollout", body, afterwards="the same command goes on from here")


if __name__ == "__main__":
    sys.exit(main())
