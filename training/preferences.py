"""Teach a model to prefer the better of two episodes: direct preference optimization (DPO), between
the warm-up and reinforcement learning.

    python -m training.preferences code --model models/warm --out models/dpo --episodes outputs/evaluations/code-mine
    python -m training.preferences code --model models/warm --out models/dpo --pairs pairs.jsonl     # rollout.py --to-dpo
    python -m training.preferences sql --model Qwen/Qwen3-0.6B --out models/dpo --episodes runs/NAME --lora-rank 16

Episodes have messages and scores: an evaluation's folder on the training file, with --k of several
episodes a task, or a run's, which keeps the messages of a few. The best of a task stands against
its worst by --margin. What is left out is counted by its reason; pairs about tasks of the test file
are. The loss covers what the policy wrote, not what tools and partners answered. The result is a
Hugging Face folder with preferences.json beside the weights. A killed command goes on when it is
given again. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from common.command import new_parser, positive, run_command
from common.files import replacing
from common.stopping import stop_in_order
from episodes import registry
from training.pairs.asked import add_flags, pairs_asked
from training.pairs.checked import longer_wins
from training.setup.model_folder import find_model

FACTS = "preferences.json"
BETA = 0.1
# Flags that change the weights
LEARNS = ("epochs", "lr", "batch_size", "lora_rank", "seed", "beta")


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the flags."""
    parser = new_parser(__doc__, prog="python -m training.preferences")
    add = parser.add_argument
    names = ", ".join(registry.names())
    add("agent", choices=registry.names(), metavar="AGENT", help=names)
    add("--model", required=True, metavar="DIR", help="where to begin: a model folder or hub id")
    add_flags(parser, epochs=1.0, lr=1e-6, batch_size=8)
    strength = f"how dear it is to leave --model behind; default: {BETA:g}"
    add("--beta", type=positive(float), default=BETA, help=strength)
    thinking = "change the chat template so that it keeps thoughts of earlier turns"
    add("--keep-thinking", action="store_true", help=thinking)
    return parser.parse_args(argv)


def prefer(arguments: argparse.Namespace) -> None:
    """Read pairs, train, write the model, and print the facts as JSON."""
    from training.pairs.trainers import check_devices, check_out, model_digest, work_folder

    agent = registry.get(arguments.agent)
    check_out(arguments.out, arguments.force)
    pairs, left_out = pairs_asked(agent, arguments)
    from training.pairs import dpo
    from training.warmup.supervised import save

    check_devices()
    folder = find_model(arguments.model)
    tools = any(pair.tools for pair in pairs)
    model, tokenizer, context = dpo.load(folder, tools, arguments.keep_thinking)
    rows = dpo.encoded(pairs, tokenizer, context, left_out)
    print(f"{len(rows)} pairs of {len(pairs)} can be encoded", file=sys.stderr)
    flags = {name: getattr(arguments, name) for name in LEARNS}
    began = {"model": model_digest(folder), "pairs": dpo.digest(rows), **flags}
    started = time.monotonic()
    with work_folder(arguments.out, began, arguments.force) as work:
        trained, found = dpo.train(model, tokenizer, rows, work, arguments)
        facts: dict[str, Any] = {
            "agent": agent.name,
            "model": arguments.model,
            "pairs": len(rows),
            "longer_wins": longer_wins(pairs),
            "left_out": dict(left_out),
            **flags,
            "seconds": round(time.monotonic() - started, 1),  # since the last start
            **found,
        }
        with replacing(arguments.out) as draft:
            trained.config.use_cache = True  # transformers' trainer turned it off
            save(trained, tokenizer, draft)
            text = json.dumps(facts, ensure_ascii=False, indent=1) + "\n"
            (draft / FACTS).write_text(text, encoding="utf-8")
    last = facts.pop("curve")[-1]
    print(json.dumps(facts | {"last": last}, ensure_ascii=False))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line of this module and return the exit code."""
    stop_in_order()
    afterwards = "the same command goes on from the last checkpoint"
    return run_command("preferences", lambda: prefer(parse_arguments(argv)), afterwards)


if __name__ == "__main__":
    sys.exit(main())
