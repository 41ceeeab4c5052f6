"""The training command for several agents at once (train_agents.py)."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from episodes.joint import weights
from episodes.registry import joined
from training.start.command import run_training

USAGE = (
    "usage: .venv/bin/python train_agents.py --agents NAME,NAME:2 "
    "[flags]; with --agents, --help lists the flags"
)


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    parser = ArgumentParser(prog="train_agents.py", add_help=False, allow_abbrev=False)
    parser.add_argument("--agents")
    named, rest = parser.parse_known_args(given)
    if not named.agents:
        print(USAGE, file=sys.stderr)
        return 2
    return run_training(lambda: joined(weights(named.agents)), rest)
