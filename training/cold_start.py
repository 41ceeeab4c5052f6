"""The supervised phase before reinforcement learning: make the bundled tiny model from nothing, or warm up another one.

    python -m training.cold_start --out sql_agent/tiny_model --force      # the bundled model, one core
    python -m training.cold_start --out /tmp/tiny --steps-a 20 --steps-b 5 --no-measure
    python -m training.cold_start --base Qwen/Qwen3-0.6B --out models/warm   # any model, on gold episodes; GPU if any

Without --base, two phases. A: right demonstrations, until it copies names and values well. B: a short run on
demonstrations that are imperfect on purpose, so that what is left to learn are decisions (call the tool, choose the
column, say something), which reinforcement learning can turn around. Loss on the assistant's tokens only; conversations
use the project's own prompts, tool and chat template (`sql_agent/demonstrations.py`). Writes a Hugging Face folder, the
tiny model's with a model card. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.settings import ROOT, SettingsError, load_settings
from data.load import DataError, load_rows
from sql_agent.demonstrations import (
    Conversation,
    Flaws,
    Narrator,
    Synthesiser,
    taken_names,
    write_scratch_database,
)
from sql_agent.prompts import PROMPT_VERSION, TOOL
from tools.sql.database import DatabaseError
from tools.sql.query import QueryTool
from training.tiny_tokenizer import common_characters, render, train_tokenizer, wrap

if TYPE_CHECKING:
    from training.supervised import Example

BATCH_A, BATCH_B = 8, 16
STEPS_A, STEPS_B = 4500, 200
CONVERSATIONS_A = 12_000  # different ones in phase A; more steps pass over them again
# Copying comes suddenly, after 1,000 to 4,000 steps, and how late differs from run to run: phase A waits for it.
MASTERY = 0.992
DECAY_A = 400
WARM_UP = 50
# Random names and values use this many different characters: each is one token, and seen often enough to be copied.
RANDOM_CHARACTERS = 1000
# Most of phase A goes without system prompt and tools: steps are three times shorter, and copying is the same skill.
BARE_SHARE = 0.75
# Half of the patterns are badly demonstrated in phase B, the other half mostly well.
BAD, GOOD = Flaws(no_call=0.66, wrong_column=0.12, empty=0.08), Flaws(no_call=0.18, wrong_column=0.17, empty=0.06)

HAN = re.compile("[\u4e00-\u9fff]")
# Chat marks and tags are tokens of their own; the tokenizer must not learn to spell them.
MARKS = re.compile(r"<[|/]?\w+\|?>")
BASE_FLAGS = {"epochs": 2.0, "lr": 1e-5, "batch_size": 8, "max_steps": None}
TINY_FLAGS = {"steps_a": STEPS_A, "steps_b": STEPS_B}


def alphabet(rows: Sequence[dict[str, Any]], rng: random.Random) -> str:
    """The characters of random names and values: every Chinese one of the training split, and others up to the size."""
    known = sorted(set(HAN.findall("".join(row["question"] + row["answer"] for row in rows))))
    others = [character for character in common_characters() if character not in set(known)]
    return "".join(known + rng.sample(others, max(0, RANDOM_CHARACTERS - len(known))))


def conversations(maker: Synthesiser, count: int, flawed: bool) -> list[Conversation]:
    """Make a phase's conversations, every query in them executed by the tool."""
    picks = maker.pick(count, copying=not flawed)
    plans = [maker.plan(i, (BAD if i % 2 else GOOD).draw(maker.rng) if flawed else "right") for i in picks]
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "scratch.db"
        write_scratch_database(scratch, plans, maker.patterns)
        narrator = Narrator(maker, QueryTool(f"sqlite:///{scratch}"))
        told = [narrator.tell(plan) for plan in plans]
    return told if flawed else [t.bare() if maker.rng.random() < BARE_SHARE else t for t in told]


def tokenizer_texts(told: Sequence[Conversation], characters: str, rng: random.Random) -> Iterator[str]:
    """Yield what the tokenizer learns from: conversations as they are rendered, and random common characters."""
    for conversation in told[:3000]:
        yield MARKS.sub("\n", render(conversation.messages, [TOOL] if conversation.tools else []))
    for _ in range(3000):
        yield "".join(rng.choices(characters, k=30))


def build(arguments: argparse.Namespace, database_url: str, unflawed: Path) -> dict[str, Any]:
    """Make data, tokenizer and model, train both phases, write the folders `unflawed` (after A) and `arguments.out`.

    Returns:
        How it was made, for the model card.
    """
    import torch

    from training.supervised import Course, Together, encode, replacing, train
    from training.tiny_model import build_model, fast_optimizers, gentle_optimizer, write_model

    torch.set_num_threads(arguments.threads)
    started, rng, seed = time.process_time(), random.Random(arguments.seed), arguments.seed
    rows = load_rows(arguments.train_file)
    maker = Synthesiser(rows, taken_names(database_url), alphabet(rows, rng), rng)
    if not maker.patterns:
        raise DataError(f"no row of {arguments.train_file} looks up a field of a named entity; rebuild it")
    print("making conversations, every query executed", file=sys.stderr, flush=True)
    right = conversations(maker, min(CONVERSATIONS_A, BATCH_A * arguments.steps_a), flawed=False)
    tokenizer = wrap(train_tokenizer(tokenizer_texts(right, maker.characters, rng)))
    flawed = conversations(maker, BATCH_B * arguments.steps_b, flawed=True)
    phases: list[list[Example]] = [[e for told in phase for e in encode(told, tokenizer)] for phase in (right, flawed)]
    model, pad = build_model(tokenizer, seed), tokenizer.pad_token_id
    decay = max(1, min(DECAY_A, arguments.steps_a // 2))
    course = Course("phase A", arguments.steps_a, decay, BATCH_A, WARM_UP, MASTERY, alike=True)
    outcome = train(model, Together(fast_optimizers(model)), phases[0], course, pad, seed)
    with replacing(unflawed) as folder:
        write_model(model, tokenizer, folder)
    course = Course("phase B", arguments.steps_b, max(1, arguments.steps_b // 2), BATCH_B, WARM_UP)
    train(model, gentle_optimizer(model), phases[1], course, pad, seed)
    with replacing(arguments.out) as folder:
        write_model(model, tokenizer, folder)
    return {
        "parameters": f"{model.num_parameters():,}",
        "vocabulary": len(tokenizer),
        "patterns": len(maker.patterns),
        "seed": seed,
        "steps_a": outcome.steps,
        "batch_a": BATCH_A,
        "accuracy_a": round(outcome.accuracy, 4),
        "steps_b": arguments.steps_b,
        "batch_b": BATCH_B,
        "minutes": round((time.process_time() - started) / 60, 1),
        "torch": torch.__version__,
        "prompt_version": PROMPT_VERSION,
    }


def make_tiny(arguments: argparse.Namespace, database_url: str) -> dict[str, Any]:
    """Build the tiny model and, unless told otherwise, measure it and write its card; return all facts about it."""
    from training.cold_start_card import measure, write_card

    with tempfile.TemporaryDirectory() as work:
        unflawed = Path(work) / "unflawed"
        facts = build(arguments, database_url, unflawed)
        if arguments.measure:
            command = ["python", "-m", "training.cold_start", "--out", "sql_agent/tiny_model", "--force"]
            chosen = {name: getattr(arguments, name) for name in ("seed", *TINY_FLAGS)}
            flags = [part for name, value in chosen.items() for part in (f"--{name.replace('_', '-')}", str(value))]
            shares = {
                f"{half}_{flaw}": round(100 * share)
                for half, flaws in (("bad", BAD), ("good", GOOD))
                for flaw, share in asdict(flaws).items()
            }
            facts |= {"command": shlex.join([*command, *flags]), **shares}
            facts |= measure(arguments.out, unflawed, Path(work))
            write_card(arguments.out, facts)
    return facts


def warm_up_base(arguments: argparse.Namespace, database_url: str) -> dict[str, Any]:
    """Warm up another model on gold episodes; return the steps taken and the accuracy on learned tokens."""
    import torch

    from training.cold_start_base import Recipe, warm_up

    torch.set_num_threads(arguments.threads)
    recipe = Recipe(**{name: getattr(arguments, name) for name in BASE_FLAGS})
    rows, tool = load_rows(arguments.train_file), QueryTool(database_url)
    outcome = warm_up(arguments.base, rows, tool, recipe, arguments.seed, arguments.out)
    return {"base": arguments.base, "out": str(arguments.out), **asdict(outcome)}


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m training.cold_start", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="model folder to write")
    parser.add_argument("--force", action="store_true", help="replace --out if it exists")
    parser.add_argument(
        "--base", metavar="MODEL", help="warm up this model folder or hub id; default: a new tiny model"
    )
    parser.add_argument("--train-file", type=Path, default=ROOT / "data" / "train.parquet")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="torch threads on a CPU")
    tiny = parser.add_argument_group("a new tiny model")
    tiny.add_argument("--steps-a", type=int, help=f"most steps of the copying phase; default: {STEPS_A}")
    tiny.add_argument("--steps-b", type=int, help=f"steps on imperfect demonstrations; default: {STEPS_B}")
    tiny.add_argument("--no-measure", dest="measure", action="store_false", help="no evaluation and no model card")
    base = parser.add_argument_group("with --base")
    base.add_argument("--epochs", type=float, help=f"passes over the training split; default: {BASE_FLAGS['epochs']}")
    base.add_argument("--lr", type=float, help=f"learning rate at its highest; default: {BASE_FLAGS['lr']}")
    base.add_argument("--batch-size", type=int, help=f"default: {BASE_FLAGS['batch_size']}")
    base.add_argument("--max-steps", type=int, help="stop after so many steps; default: when the epochs are over")
    arguments = parser.parse_args(argv)
    _complete(parser, arguments)
    return arguments


def _complete(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Refuse flags of the other mode and useless numbers, and put the defaults in."""
    own, foreign = (BASE_FLAGS, TINY_FLAGS) if arguments.base else (TINY_FLAGS, BASE_FLAGS)
    for name in foreign:
        if getattr(arguments, name) is not None:
            parser.error(f"--{name.replace('_', '-')} has no use {'with' if arguments.base else 'without'} --base")
    for name in own:
        if getattr(arguments, name) is None:
            setattr(arguments, name, own[name])
    for name in ("threads", *own):
        value = getattr(arguments, name)
        if value is not None and (value <= 0 or (value < 1 and isinstance(value, int))):
            parser.error(f"--{name.replace('_', '-')} is {value}; it must be above 0")
    if arguments.out.exists() and not (arguments.out / "config.json").is_file():
        parser.error(f"--out {arguments.out} exists and is no model folder; give another folder")
    if arguments.out.exists() and not arguments.force:
        parser.error(f"--out {arguments.out} exists; give --force to replace it, or another folder")


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    arguments = parse_arguments(argv)
    from training.cold_start_base import BaseError
    from training.cold_start_card import CardError

    try:
        database_url = load_settings().database_url
        facts = (warm_up_base if arguments.base else make_tiny)(arguments, database_url)
    except (BaseError, CardError, DataError, DatabaseError, SettingsError) as error:
        print(f"cold_start: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cold_start: interrupted; nothing was written", file=sys.stderr)
        return 130
    print(json.dumps(facts, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
