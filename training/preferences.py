"""Teach a model to prefer the better of two episodes: direct preference optimization (DPO), between
the warm-up and reinforcement learning.

    .venv/bin/python -m training.preferences code --model models/warm --out models/dpo --episodes outputs/evaluations/mine
    .venv/bin/python -m training.preferences code --model models/warm --out dpo --pairs pairs.jsonl  # rollout.py --to-dpo
    .venv/bin/python -m training.preferences sql --model Qwen/Qwen3-0.6B --out dpo --episodes runs/NAME --lora-rank 16

Episodes are those of an evaluation on the training file with several a task (--k), or of a run. The
best of a task stands against its worst by --margin. What is left out, such as tasks of the test
file, is counted. The loss covers what the policy wrote. A killed command goes on when it is given
again. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from common.command import imported, new_parser, positive, run_command
from common.stopping import stop_in_order
from episodes import registry
from training.pairs.asked import add_flags, pairs_asked

BETA = 0.1


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("--model", required=True, metavar="DIR", help="where to begin: a model folder or hub id")
    add_flags(parser, lr=1e-6)
    strength = f"how dear it is to leave --model behind; default: {BETA:g}"
    add("--beta", type=positive(float), default=BETA, help=strength)
    thinking = "change the chat template so that it keeps thoughts of earlier turns"
    add("--keep-thinking", action="store_true", help=thinking)
    stop_in_order()

    def prefer() -> None:
        arguments = parser.parse_args(argv)
        pairs, left_out = pairs_asked(registry.get(arguments.agent), arguments)
        imported("training.pairs.dpo").prefer(arguments, pairs, left_out)

    afterwards = "the same command goes on from the last checkpoint"
    return run_command("preferences", prefer, afterwards)


if __name__ == "__main__":
    sys.exit(main())
