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

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from common.command import filled, new_parser, number, positive, run_command
from common.stopping import stop_in_order
from episodes import registry
from training.pairs.pair import pairs_asked

BETA = 0.1
LR = 1e-6
MARGIN = 0.2
SEED = number(int, lambda value: 0 <= value < 2**32, f"from 0 to {2**32 - 1}")  # numpy's
SHARE = number(float, lambda value: 0 < value <= 1, "above 0, at most 1")


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add(
        "--model",
        type=filled,
        required=True,
        metavar="DIR",
        help="where to begin: a model folder or hub id",
    )
    names = registry.names()
    add("agent", choices=names, metavar="AGENT", help=", ".join(names))
    source = parser.add_mutually_exclusive_group(required=True)
    episodes = "folders of evaluations or runs, or files of episodes: best against worst of a task"
    source.add_argument("--episodes", type=Path, nargs="+", metavar="PLACE", help=episodes)
    pairs = "JSON lines of prompt, chosen, rejected"
    source.add_argument("--pairs", type=Path, metavar="FILE", help=pairs)
    add("--out", type=Path, required=True, help="folder for the model")
    add("--force", action="store_true", help="replace --out, and begin anew")
    margin = f"least difference of two episodes' scores; default: {MARGIN:g}"
    add("--margin", type=SHARE, default=MARGIN, help=margin)
    add("--epochs", type=positive(float), default=1.0, help="default: 1")
    add("--lr", type=positive(float), default=LR, help=f"learning rate; default: {LR:g}")
    add("--batch-size", type=positive(int), default=8, help="default: 8")
    rank = "train an adapter of this rank and merge it; default: train all weights"
    add("--lora-rank", type=positive(int), metavar="RANK", help=rank)
    add("--seed", type=SEED, default=0)
    strength = f"how strongly the new model is held to --model; default: {BETA:g}"
    add("--beta", type=positive(float), default=BETA, help=strength)
    thinking = "change the chat template so that it keeps thoughts of earlier turns"
    add("--keep-thinking", action="store_true", help=thinking)
    stop_in_order()

    def prefer() -> None:
        arguments = parser.parse_args(argv)
        pairs, left_out = pairs_asked(registry.get(arguments.agent), arguments)
        import_module("training.pairs.dpo").prefer(arguments, pairs, left_out)

    afterwards = "the same command goes on from the last checkpoint"
    return run_command("preferences", prefer, afterwards)


if __name__ == "__main__":
    sys.exit(main())
