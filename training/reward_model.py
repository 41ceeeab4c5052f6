"""Train a reward model: a score for a question and an answer, learned from pairs.

    python -m training.reward_model sql --base models/warm --out models/reward --episodes outputs/evaluations/sql-mine
    python -m training.reward_model sql --base Qwen/Qwen3-0.6B --out models/reward --pairs pairs.jsonl --lora-rank 16
    python -m training.serve --reward-model models/reward  # says which settings to use it with

Pairs come from the same places as those of training.preferences; the question and the final answers
of each are learned, as a judge sees them. A fifth of the tasks is held out. reward_model.json says
how often the better answer of these scores higher, with an interval, and how often it is the longer
one. reward_scale.json maps raw scores to [0, 1], scores.jsonl has the held-out ones. A killed
command goes on when it is given again. Exit codes: 0 done, 1 failed, 2 wrong usage, 130
interrupted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.command import Failure, new_parser, run_command
from common.files import replacing
from common.jsonl import write_jsonl
from common.stopping import stop_in_order
from episodes import registry
from training.pairs.answers import AnswerPair, answer_pairs, platt, ranked
from training.pairs.asked import add_flags, pairs_asked
from training.setup.model_folder import find_model

FACTS, SCALE, SCORES = "reward_model.json", "reward_scale.json", "scores.jsonl"
HELD_OUT = 0.2  # of the tasks
LEARNS = ("epochs", "lr", "batch_size", "lora_rank", "seed")  # flags that change the weights


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the flags."""
    parser = new_parser(__doc__, prog="python -m training.reward_model")
    add = parser.add_argument
    names = ", ".join(registry.names())
    add("agent", choices=registry.names(), metavar="AGENT", help=names)
    add("--base", required=True, metavar="DIR", help="the language model it begins as")
    add_flags(parser, epochs=1.0, lr=1e-5, batch_size=8)
    return parser.parse_args(argv)


def learn(arguments: argparse.Namespace) -> None:
    """Read pairs, train, measure on held-out tasks, write the model, and print the
    facts as JSON.
    """
    from training.pairs.trainers import check_devices, check_out, model_digest, work_folder

    agent = registry.get(arguments.agent)
    check_out(arguments.out, arguments.force)
    found, left_out = pairs_asked(agent, arguments)
    pairs = answer_pairs(found, left_out)
    from training.pairs import ranking
    from training.pairs.scorer import load_scorer

    check_devices()
    folder = find_model(arguments.base)
    scorer = load_scorer(folder, arguments.seed)
    pairs = ranking.fitting(pairs, scorer, left_out)
    taught, held = ranking.split_by_task(pairs, HELD_OUT, arguments.seed)
    print(
        f"{len(taught)} pairs to learn from, {len(held)} of other tasks held out", file=sys.stderr
    )
    flags = {name: getattr(arguments, name) for name in LEARNS}
    digest = hashlib.sha256(repr(pairs).encode()).hexdigest()
    began = {"base": model_digest(folder), "pairs": digest, **flags}
    started = time.monotonic()
    with work_folder(arguments.out, began, arguments.force) as work:
        trained, learned = ranking.train(scorer, taught, work, arguments)
        named = {"agent": agent.name, "base": arguments.base}
        counts = {"pairs": len(taught), "left_out": dict(left_out)}
        seconds = round(time.monotonic() - started, 1)  # since the last start
        facts = {**named, **counts, **flags, "seconds": seconds, **learned}
        with replacing(arguments.out) as draft:
            facts = write(trained, scorer.tokenizer, held, facts, draft)
    print(json.dumps({name: facts[name] for name in facts if name != "curve"}, ensure_ascii=False))
    if not facts["calibrated"]:
        raise Failure(
            f"{arguments.out} is written, but its scores do not tell better "
            "answers of held-out tasks from worse ones, so it has no map "
            "to [0, 1]; train longer, on more pairs, or another --base"
        )


def write(
    model: Any, tokenizer: Any, held: Sequence[AnswerPair], facts: dict[str, Any], folder: Path
) -> dict[str, Any]:
    """Write the model, score the held-out answers with what was written, and return the facts with
    what that says.
    """
    from training.pairs.scorer import load_scorer
    from training.warmup.supervised import save

    save(model, tokenizer, folder)
    texts = [(pair.question, answer) for pair in held for answer in pair.answers]
    scores = load_scorer(folder).scores(texts)
    good, bad = scores[::2], scores[1::2]
    both = [*zip(good, bad, strict=True)]
    measured = ranked(held, both, facts["seed"])
    above_chance = "ci95" in measured and measured["ci95"][0] > 0.5
    scale = platt(good, bad) if above_chance else None
    facts = {**facts, "calibrated": scale is not None, "held_out": measured}
    lines = [
        {"task": pair.task, "chosen": number % 2 == 0, "score": score}
        for number, (score, pair) in enumerate(
            zip(scores, [pair for pair in held for _ in pair.answers], strict=True)
        )
    ]
    write_jsonl(folder / SCORES, lines, force=True)
    if scale:
        write_jsonl(folder / SCALE, [scale], force=True)
    text = json.dumps(facts, ensure_ascii=False, indent=1) + "\n"
    (folder / FACTS).write_text(text, encoding="utf-8")
    return facts


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line of this module and return the exit code."""
    stop_in_order()
    afterwards = "the same command goes on from the last checkpoint"
    return run_command("reward_model", lambda: learn(parse_arguments(argv)), afterwards)


if __name__ == "__main__":
    sys.exit(main())
