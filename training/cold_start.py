"""The supervised phase before reinforcement learning: make an agent's bundled model from nothing,
or warm up another model.

    .venv/bin/python -m training.cold_start sql --force  # the bundled model sql_agent/tiny_model, one core
    .venv/bin/python -m training.cold_start sql --out /tmp/tiny --steps-a 20 --steps-b 5
    .venv/bin/python -m training.cold_start diagnosis --base MODEL --role simulator --out models/world
    .venv/bin/python -m training.cold_start sql --base Qwen/Qwen3-0.6B --out models/warm   # with a GPU if there is

The lessons are the agent's own, the demonstrations of a --role, or a file of dialogues. The loss
covers the assistant's tokens only. The result is a Hugging Face folder. Exit codes: 0 done, 1
failed, 2 wrong usage, 130 interrupted.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from random import Random

from common.command import filled, new_parser, positive, run_command
from common.settings import load_settings
from common.stopping import stop_in_order
from episodes import registry
from episodes.agent import bundled_model
from episodes.episode import Conversation
from episodes.turns import with_turns
from training.warmup.work_folder import check_out

LARGE_PAGES = ("THP_MEM_ALLOC_ENABLE", "1")  # which torch reads when it is imported
TINY_FLAGS = {"steps_a": 6500, "steps_b": 200, "mastered": None}
BASE_FLAGS = {
    "role": "policy",
    "dialogues": None,
    "demonstrations": None,
    "epochs": 2.0,
    "lr": 1e-5,
    "batch_size": 8,
    "lora_rank": 0,
}
LEARNED = ("epochs", "lr", "batch_size", "seed", "lora_rank")  # flags that change the weights


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    whose = "whose lessons or demonstrations; several with + between them, such as NAME+NAME"
    parser.add_argument("agent", help=f"{whose}; the agents are {', '.join(registry.names())}")
    parser.add_argument("--out", type=Path, help="model folder; default: the agent's tiny_model")
    parser.add_argument("--force", action="store_true", help="replace --out if it exists")
    warmed = "warm up this model folder or hub id; default: a tiny model"
    parser.add_argument("--base", type=filled, metavar="MODEL", help=warmed)
    rows = "rows to learn from; default: the agent's training split"
    parser.add_argument("--train-file", type=Path, help=rows)
    parser.add_argument("--seed", type=int, default=2)
    # Without defaults, so that a flag that was not given is not there
    tiny = parser.add_argument_group("a new tiny model", argument_default=argparse.SUPPRESS)
    tiny.add_argument("--steps-a", type=positive(int), help="most steps of copying; default: 6500")
    steps_b = "steps on imperfect demonstrations; default: 200"
    tiny.add_argument("--steps-b", type=positive(int), help=steps_b)
    mastered = "also keep the model as it was before the imperfect demonstrations"
    tiny.add_argument("--mastered", type=Path, metavar="DIR", help=mastered)
    base = parser.add_argument_group("with --base", argument_default=argparse.SUPPRESS)
    roles = "whose part of the conversations is learned, as the agent names it; default: policy"
    base.add_argument("--role", help=roles)
    dialogues = "learn from these instead, as the policy"
    base.add_argument("--dialogues", type=Path, metavar="FILE", help=dialogues)
    number = "learn from N of them at most, drawn by --seed; default: all"
    base.add_argument("--demonstrations", type=positive(int), metavar="N", help=number)
    base.add_argument("--epochs", type=positive(float), help="passes over them; default: 2")
    base.add_argument("--lr", type=positive(float), help="highest learning rate; default: 1e-5")
    base.add_argument("--batch-size", type=positive(int), help="default: 8")
    adapter = "train an adapter of this rank and merge it; default: train all weights"
    base.add_argument("--lora-rank", type=positive(int), metavar="RANK", help=adapter)
    arguments = parser.parse_args(argv)
    beside = "with" if arguments.base else "without"
    for name in TINY_FLAGS if arguments.base else BASE_FLAGS:
        if name in arguments:
            parser.error(f"--{name.replace('_', '-')} has no use {beside} --base")
    if "dialogues" in arguments and ("role" in arguments or arguments.train_file):
        parser.error("--dialogues is what the policy learns; leave out --role and --train-file")
    if arguments.out is None and arguments.base:
        parser.error("--out is needed with --base: the folder of a model of its own")
    arguments.out = arguments.out or Path(bundled_model(registry.get(arguments.agent)))
    usual = BASE_FLAGS if arguments.base else TINY_FLAGS
    return argparse.Namespace(**{**usual, **vars(arguments)})


def cold_start(given: argparse.Namespace) -> None:
    check_out(given.out, given.force)
    agent = registry.get(given.agent)
    settings = with_turns(agent, load_settings())
    rows = agent.rows(given.train_file or agent.splits["train"])
    if given.base:
        os.environ.setdefault(*LARGE_PAGES)
        conversations: Iterable[Conversation]
        if given.dialogues:
            kept = agent.dialogues(given.dialogues, settings)
            # Lines of an evaluation's episodes.jsonl do not name them
            conversations = (replace(one, tools=one.tools or agent.tools) for one in kept)
        else:
            conversations = agent.demonstrations(given.role, rows, settings)
        if given.demonstrations:
            conversations = [*conversations]
            Random(given.seed).shuffle(conversations)
        learned = {name: getattr(given, name) for name in LEARNED}
        limits = {"most": given.demonstrations, "anew": given.force}
        facts = import_module("training.warmup.supervised").warm_up(
            given.base, conversations, given.out, **learned, **limits
        )
    else:
        steps = (given.steps_a, given.steps_b)
        facts = import_module("training.warmup.tiny_model").make(
            agent, rows, settings, steps, given.seed, given.out, given.mastered, given.force
        )
    print(json.dumps(facts, ensure_ascii=False))


def main(argv: Sequence[str] | None = None) -> int:
    stop_in_order()
    return run_command("cold_start", lambda: cold_start(parse_arguments(argv)))


if __name__ == "__main__":
    sys.exit(main())
