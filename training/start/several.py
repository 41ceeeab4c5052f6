"""The training command for several agents at once (train_agents.py)."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from common.command import as_typed
from episodes.episode import AgentError
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
        print(as_typed(USAGE), file=sys.stderr)
        return 2
    return run_training(lambda: joined(weights(named.agents)), rest)


def weights(text: str) -> dict[str, float]:
    """Return the weights of a text such as "sql,diagnosis:2". Raises AgentError: another form."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, colon, number = part.strip().partition(":")
        try:
            weight = float(number) if colon else 1.0
        except ValueError:
            weight = 0.0
        if not name or name in found or not 0 < weight < float("inf"):
            raise AgentError(
                f"{part!r}: expected each agent once, NAME or NAME:WEIGHT with a weight above 0"
            )
        found[name] = weight
    return found
