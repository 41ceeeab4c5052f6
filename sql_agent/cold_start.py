"""Build the bundled tiny model from nothing: tokenizer, then a Qwen3 of a few hundred thousand parameters.

Two phases. A: right demonstrations, until it copies names and values well (`--steps-a`). B: a short run on
demonstrations that are imperfect on purpose (`--steps-b`), so that what is left to learn are decisions (call the tool,
choose the column, say something), which reinforcement learning can turn around. Loss on the assistant's tokens only;
conversations use the project's own prompts, tool and chat template (`sql_agent/demonstrations.py`).

    python -m sql_agent.cold_start --out sql_agent/tiny_model        # about 5 minutes, one core
    python -m sql_agent.cold_start --out /tmp/tiny --steps-a 20 --steps-b 5 --no-measure

Writes a Hugging Face folder with a model card. Needs the training stack's torch and transformers.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Any

from data.load import DataError, load_rows
from sql_agent.cold_start_measure import measure
from sql_agent.cold_start_training import (
    Course,
    batches,
    build_model,
    encode,
    fast_optimizers,
    gentle_optimizers,
    save,
    train,
)
from sql_agent.demonstrations import (
    Conversation,
    Flaws,
    Narrator,
    Plan,
    Synthesiser,
    taken_names,
    write_scratch_database,
)
from sql_agent.prompts import PROMPT_VERSION, TOOL
from sql_agent.tiny_tokenizer import common_characters, render, train_tokenizer, wrap
from tools.database import DatabaseError
from tools.query import QueryTool
from utils.settings import ROOT, SettingsError, load_settings

BATCH_A, BATCH_B = 8, 16
CONVERSATIONS_A = 12_000  # different ones in phase A; more steps pass over them again
# Copying comes suddenly, after 1,000 to 4,000 steps, and how late differs from run to run: phase A waits for it.
MASTERY = 0.985
DECAY_A = 400
# Random names and values use this many different characters: each is one token, and seen often enough to be copied.
RANDOM_CHARACTERS = 1000
# Most of phase A goes without system prompt and tools: steps are three times shorter, and copying is the same skill.
BARE_SHARE = 0.75
# Half of the patterns are badly demonstrated in phase B, the other half mostly well.
BAD, GOOD = Flaws(no_call=0.65, wrong_column=0.12, empty=0.08), Flaws(no_call=0.10, wrong_column=0.15, empty=0.05)

CARD = Path(__file__).with_name("tiny_model_card.md")
SAMPLES = 4  # episodes a question at temperature 1, for the model card
# Chat marks and tags are tokens of their own; the tokenizer must not learn to spell them.
MARKS = re.compile(r"<[|/]?\w+\|?>")


def conversations(
    rows: Sequence[dict[str, Any]], counts: tuple[int, int], database_url: str, rng: random.Random
) -> tuple[list[Conversation], list[Conversation], Synthesiser]:
    """Make the two phases' conversations, every query in them executed by the tool."""
    characters = "".join(rng.sample(common_characters(), RANDOM_CHARACTERS))
    maker = Synthesiser(rows, taken_names(database_url), characters, rng)
    if not maker.patterns:
        raise DataError("no training row looks up a field of a named entity; rebuild data/train.parquet")
    phases: list[list[Plan]] = []
    for count, flawed in zip(counts, (False, True), strict=True):
        picks = maker.pick(count)
        phases.append([maker.plan(i, (BAD if i % 2 else GOOD).draw(rng) if flawed else "right") for i in picks])
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "scratch.db"
        write_scratch_database(scratch, phases[0] + phases[1], maker.patterns)
        narrator = Narrator(maker, QueryTool(f"sqlite:///{scratch}"))
        first, second = ([narrator.tell(plan) for plan in phase] for phase in phases)
    return [told.bare() if rng.random() < BARE_SHARE else told for told in first], second, maker


def tokenizer_texts(told: Sequence[Conversation], characters: str, rng: random.Random) -> Iterator[str]:
    """Yield what the tokenizer learns from: conversations as they are rendered, and random common characters."""
    for conversation in told[:3000]:
        yield MARKS.sub("\n", render(conversation.messages, [TOOL] if conversation.tools else []))
    for _ in range(3000):
        yield "".join(rng.choices(characters, k=30))


def build(arguments: argparse.Namespace) -> dict[str, Any]:
    """Make data, tokenizer and model, train both phases, write the folder; return the numbers of the model card."""
    import torch

    torch.set_num_threads(arguments.threads)
    started, rng = time.monotonic(), random.Random(arguments.seed)
    rows = load_rows(arguments.train_file)
    counts = (min(CONVERSATIONS_A, BATCH_A * arguments.steps_a), BATCH_B * arguments.steps_b)
    first, second, maker = conversations(rows, counts, arguments.database_url, rng)
    tokenizer = wrap(train_tokenizer(tokenizer_texts(first, maker.characters, rng)))
    model = build_model(tokenizer, arguments.seed)
    print(f"{len(maker.patterns)} patterns, {sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    pad = tokenizer.pad_token_id
    encoded = [[encode(conversation, tokenizer) for conversation in phase] for phase in (first, second)]
    print(f"longest conversation {max(len(e.ids) for phase in encoded for e in phase)} tokens", flush=True)
    course = Course("A", arguments.steps_a, max(1, min(DECAY_A, arguments.steps_a // 2)), MASTERY)
    first_phase = train(model, fast_optimizers(model), batches(encoded[0], BATCH_A, rng, alike=True), course, pad)
    course = Course("B", arguments.steps_b, max(1, arguments.steps_b // 2))
    train(model, gentle_optimizers(model), batches(encoded[1], BATCH_B, rng, alike=False), course, pad)
    save(model, tokenizer, arguments.out)
    return {
        "parameters": f"{sum(p.numel() for p in model.parameters()):,}",
        "steps_taken": str(first_phase.steps),
        "copying": f"{first_phase.accuracy:.3f}",
        "minutes": f"{(time.monotonic() - started) / 60:.1f}",
        "torch": torch.__version__,
    }


def write_card(arguments: argparse.Namespace, numbers: dict[str, str]) -> dict[str, Any]:
    """Measure the model on the validation and test questions and write the model card; return what was measured."""
    measured: dict[str, Any] = {}
    for name in ("val", "test"):
        file = ROOT / "data" / f"{name}.parquet"
        measured[name] = measure(arguments.out, file, SAMPLES, arguments.seed, arguments.database_url)
    lines = [
        f"| {name}, {m['questions']} | {m['greedy']['success']:.2f} | {m['sampled']['success']:.2f} "
        f"| {m['sampled']['reward']:.2f} | {m['sampled']['queried']:.2f} |"
        for name, m in measured.items()
    ]
    facts = {
        **numbers,
        "command": f"python -m sql_agent.cold_start --out sql_agent/tiny_model --seed {arguments.seed} "
        f"--steps-a {arguments.steps_a} --steps-b {arguments.steps_b}",
        "seed": arguments.seed,
        "steps_a": arguments.steps_a,
        "steps_b": arguments.steps_b,
        "samples": SAMPLES,
        "prompt_version": PROMPT_VERSION,
        "bad": f"{1 - BAD.right:.0%}",
        "good": f"{1 - GOOD.right:.0%}",
        "measured": "\n".join(lines),
    }
    (arguments.out / "README.md").write_text(
        Template(CARD.read_text(encoding="utf-8")).substitute(facts), encoding="utf-8"
    )
    return measured


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sql_agent.cold_start", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="model folder to write (replaced when it exists)")
    parser.add_argument("--train-file", type=Path, default=ROOT / "data" / "train.parquet")
    parser.add_argument("--database-url", default=None, help="default: DATABASE_URL or the embedded database")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--steps-a", type=int, default=5000, help="most steps of the copying phase")
    parser.add_argument("--steps-b", type=int, default=200, help="steps on imperfect demonstrations")
    parser.add_argument("--no-measure", dest="measure", action="store_false", help="write no model card")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    arguments = parser.parse_args(argv)
    for name in ("steps_a", "steps_b", "threads"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name.replace('_', '-')} is {getattr(arguments, name)}; it must be at least 1")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    try:
        arguments.database_url = arguments.database_url or load_settings().database_url
        numbers = build(arguments)
        measured = write_card(arguments, numbers) if arguments.measure else {}
    except (DataError, DatabaseError, SettingsError) as error:
        print(f"cold_start: {error}", file=sys.stderr)
        return 1
    print(json.dumps({**numbers, **measured}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
