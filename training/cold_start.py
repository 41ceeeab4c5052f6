"""The supervised phase before reinforcement learning: make an agent's bundled model from nothing,
or warm up another model.

    .venv/bin/python -m training.cold_start sql --force  # the bundled model sql_agent/tiny_model, one core
    .venv/bin/python -m training.cold_start sql --out /tmp/tiny --steps-a 20 --steps-b 5 --no-measure
    .venv/bin/python -m training.cold_start diagnosis --role simulator --out models/world --steps-a 1500
    .venv/bin/python -m training.cold_start sql --base Qwen/Qwen3-0.6B --out models/warm   # with a GPU if there is

The lessons are the agent's own, the demonstrations of a --role, or a file of dialogues. The loss
covers the assistant's tokens only. The result is a Hugging Face folder. Exit codes: 0 done, 1
failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from common.command import WRITTEN, imported, new_parser, positive, run_command
from common.files import replacing
from common.settings import Settings, load_settings
from common.stopping import stop_in_order
from episodes import registry
from episodes.agent import Agent, Row, bundled_model, folder_of
from episodes.episode import Conversation
from episodes.turns import with_turns
from training.warmup.work_folder import check_out, work_folder

LARGE_PAGES = ("THP_MEM_ALLOC_ENABLE", "1")  # which torch reads when it is imported
TINY_FLAGS = {"steps_a": 6500, "steps_b": 200}
BASE_FLAGS = {
    "dialogues": None,
    "epochs": 2.0,
    "lr": 1e-5,
    "batch_size": 8,
    "lora_rank": 0,
}


def make_tiny(
    agent: Agent, rows: Sequence[Row], arguments: argparse.Namespace, settings: Settings
) -> dict[str, Any]:
    """Make the tiny model, write its card unless --no-measure is given, and return its facts."""
    cards = imported("training.warmup.cold_start_card")
    make = imported("training.warmup.tiny_model").make
    seed = arguments.seed
    steps = (arguments.steps_a, arguments.steps_b)
    measured = arguments.measure and arguments.role == "policy"
    headline = partial(cards.headline_of, agent) if measured else None
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    began = {
        "rows": hashlib.sha256(json.dumps(rows, default=str).encode()).hexdigest(),
        "steps": list(steps),
        "seed": seed,
        "role": arguments.role,
    }
    with (
        work_folder(arguments.out, began, arguments.force) as work,
        replacing(arguments.out) as out,
        tempfile.TemporaryDirectory() as folder,
    ):
        mastered = Path(folder) / "mastered"
        facts: dict[str, Any] = make(
            agent, rows, settings, steps, seed, out, mastered, work, arguments.role, headline
        )
        if measured:
            facts["command"] = command_for_card(agent, arguments)
            facts |= cards.measure(agent, out, mastered)
            cards.write_card(agent, out, facts)
    return facts


def command_for_card(agent: Agent, arguments: argparse.Namespace) -> str:
    words = [WRITTEN, "-m", "training.cold_start", agent.name]
    if arguments.out.resolve() != Path(bundled_model(agent)).resolve():
        words += ["--out", str(arguments.out)]
    if arguments.train_file:
        words += ["--train-file", str(arguments.train_file)]
    numbers = {
        "--seed": arguments.seed,
        "--steps-a": arguments.steps_a,
        "--steps-b": arguments.steps_b,
    }
    words.append("--force")
    for flag, number in numbers.items():
        words += [flag, str(number)]
    return shlex.join(words)


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    whose = "whose lessons or demonstrations; several with + between them, such as NAME+NAME"
    parser.add_argument("agent", help=f"{whose}; the agents are {', '.join(registry.names())}")
    parser.add_argument("--out", type=Path, help="model folder; default: the agent's tiny_model")
    parser.add_argument("--force", action="store_true", help="replace --out if it exists")
    parser.add_argument(
        "--base", metavar="MODEL", help="warm up this model folder or hub id; default: a tiny model"
    )
    roles = "whose part of the conversations is learned, as the agent names it; default: policy"
    parser.add_argument("--role", default=argparse.SUPPRESS, help=roles)
    parser.add_argument(
        "--train-file", type=Path, help="rows to learn from; default: the agent's training split"
    )
    parser.add_argument("--seed", type=int, default=2)
    tiny = parser.add_argument_group("a new tiny model", argument_default=argparse.SUPPRESS)
    tiny.add_argument(
        "--steps-a", type=positive(int), help="most steps of the copying phase; default: 6500"
    )
    tiny.add_argument(
        "--steps-b", type=positive(int), help="steps on imperfect demonstrations; default: 200"
    )
    unmeasured = "no evaluation and no model card"
    tiny.add_argument(
        "--no-measure", dest="measure", action="store_false", default=True, help=unmeasured
    )
    base = parser.add_argument_group("with --base", argument_default=argparse.SUPPRESS)
    base.add_argument(
        "--dialogues", type=Path, metavar="FILE", help="learn from these instead, as the policy"
    )
    base.add_argument(
        "--epochs", type=positive(float), help="passes over the demonstrations; default: 2"
    )
    base.add_argument(
        "--lr", type=positive(float), help="learning rate at its highest; default: 1e-5"
    )
    base.add_argument("--batch-size", type=positive(int), help="default: 8")
    adapter = "train an adapter of this rank and merge it; default: train all weights"
    base.add_argument("--lora-rank", type=positive(int), metavar="RANK", help=adapter)
    arguments = parser.parse_args(argv)
    refuse_combinations(parser, arguments)
    agent = registry.get(arguments.agent)
    role = getattr(arguments, "role", "policy")
    if arguments.out is None and (arguments.base or role != "policy"):
        parser.error("--out is needed with --base or --role: the folder of a model of its own")
    arguments.out = arguments.out or Path(bundled_model(agent))
    own = BASE_FLAGS if arguments.base else TINY_FLAGS
    given = argparse.Namespace(**{"role": "policy", **own, **vars(arguments)})
    card = folder_of(agent) / "tiny_model_card.md"
    if not given.base and given.measure and given.role == "policy" and not card.is_file():
        what = "what the model was taught, for its card"
        parser.error(f"there is no {card} ({what}); write it, or give --no-measure")
    return given


def refuse_combinations(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    foreign = TINY_FLAGS if arguments.base else BASE_FLAGS
    beside = "with" if arguments.base else "without"
    for name in foreign:
        if name in arguments:
            parser.error(f"--{name.replace('_', '-')} has no use {beside} --base")
    if "dialogues" in arguments and ("role" in arguments or arguments.train_file):
        parser.error(
            "--dialogues has no use for --role or "
            "--train-file: it is what is learned, by the policy"
        )


def cold_start(given: argparse.Namespace) -> None:
    check_out(given.out, given.force)
    agent = registry.get(given.agent)
    settings = with_turns(agent, load_settings())
    rows = agent.rows(given.train_file or agent.splits["train"])
    if given.base:
        os.environ.setdefault(*LARGE_PAGES)

        conversations: Iterable[Conversation]
        if given.dialogues:
            kept = agent.teaching.dialogues(given.dialogues, agent.name, settings)
            # Lines of an evaluation's episodes.jsonl do not name them
            conversations = (replace(one, tools=one.tools or agent.tools) for one in kept)
        else:
            conversations = agent.teaching.demonstrations(given.role, rows, settings)
        facts = imported("training.warmup.supervised").warm_up(
            given.base,
            conversations,
            given.out,
            given.epochs,
            given.lr,
            given.batch_size,
            given.seed,
            given.lora_rank,
            anew=given.force,
        )
    else:
        facts = make_tiny(agent, rows, given, settings)
    print(json.dumps(facts, ensure_ascii=False))


def main(argv: Sequence[str] | None = None) -> int:
    stop_in_order()
    return run_command("cold_start", lambda: cold_start(parse_arguments(argv)))


if __name__ == "__main__":
    sys.exit(main())
