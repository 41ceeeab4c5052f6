"""The flags that `training.preferences` and `training.reward_model` share, and the
pairs they name.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from common.command import number, positive
from episodes.agent import Agent
from training.pairs.checked import counted, longer_wins, usable
from training.pairs.pair import LeftOut, Pair, pairs_of_episodes, pairs_of_file

MARGIN = 0.2
LOPSIDED = 0.2  # distance from a half of the share of pairs whose longer side wins
SHARE = number(float, lambda value: 0 < value <= 1, "above 0, at most 1")


def add_flags(parser: argparse.ArgumentParser, epochs: float, lr: float, batch_size: int) -> None:
    """Add where pairs come from, how they are learned, and where the result goes."""
    add = parser.add_argument
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--episodes",
        type=Path,
        nargs="+",
        metavar="PLACE",
        help="folders of evaluations or runs, or files of episodes: best against worst of a task",
    )
    source.add_argument(
        "--pairs", type=Path, metavar="FILE", help="JSON lines of prompt, chosen, rejected"
    )
    add("--out", type=Path, required=True, help="folder for the model")
    add("--force", action="store_true", help="replace --out, and begin anew")
    add(
        "--margin",
        type=SHARE,
        default=MARGIN,
        help=f"least difference of two episodes' scores; default: {MARGIN:g}",
    )
    length = "keep pairs of which one side is the other one and goes on"
    add("--length-pairs", action="store_true", help=length)
    add("--epochs", type=positive(float), default=epochs, help=f"default: {epochs:g}")
    add("--lr", type=positive(float), default=lr, help=f"learning rate; default: {lr:g}")
    add("--batch-size", type=positive(int), default=batch_size, help=f"default: {batch_size}")
    rank = "train an adapter of this rank and merge it; default: train all weights"
    add("--lora-rank", type=positive(int), metavar="RANK", help=rank)
    add("--seed", type=int, default=0)


def pairs_asked(agent: Agent, arguments: argparse.Namespace) -> tuple[list[Pair], LeftOut]:
    """Return the pairs that the flags name, checked, and what was left out; say both on the screen.

    Raises UsageError: a file or folder cannot be used, or no pair is left.
    """
    if arguments.pairs:
        found, left_out = pairs_of_file(arguments.pairs, agent)
    else:
        found, left_out = pairs_of_episodes(arguments.episodes, agent, arguments.margin)
    kept = usable(found, agent, arguments.length_pairs, left_out)
    share = longer_wins(kept)
    lengths = "all of equal length" if share is None else f"the longer side wins {share:.0%}"
    tasks = len({pair.task for pair in kept})
    print(f"{len(kept)} pairs of {tasks} tasks; {lengths}", file=sys.stderr)
    if share is not None and abs(share - 0.5) > LOPSIDED:
        print("beware: what is learned from such pairs may be length", file=sys.stderr)
    if left_out:
        print(f"left out: {counted(left_out)}", file=sys.stderr)
    return kept, left_out
