"""Train a reward model on pairs of answers, by TRL."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from datasets import Dataset
from jinja2 import TemplateError
from scipy.stats import binomtest
from trl import RewardConfig, RewardTrainer

from common.command import Failure, UsageError
from common.jsonl import write_jsonl
from common.terminal import watched
from training.pairs.asked import counted
from training.pairs.pair import LeftOut, Pair
from training.pairs.scorer import FACTS, SCALE, Scorer, load_scorer
from training.pairs.trainers import Shown, Silent, check_devices, learn, trainer_settings
from training.setup.model_folder import find_model
from training.warmup.supervised import adapter, save
from training.warmup.work_folder import check_out

HELD_OUT = 0.2  # of the tasks
LUCK = 0.05  # probability of so many right pairs if scores said nothing


class AnswerPairTrainer(Silent, RewardTrainer):
    """TRL's trainer of reward models."""


def fitting(pairs: Sequence[Pair], scorer: Scorer, left_out: LeftOut) -> list[Pair]:
    """Return the pairs that the model can read. Raises UsageError: it can read none."""
    kept = []
    for pair in watched(pairs, "encoding", "pairs"):
        try:
            sides = (pair.chosen, pair.rejected)
            longest = max(len(scorer.tokens(pair.question, side.answer)) for side in sides)
        except TemplateError:
            left_out["the chat template refuses the messages"] += 1
            continue
        if longest > scorer.context:
            left_out[f"longer than the model's {scorer.context} positions"] += 1
        else:
            kept.append(pair)
    if not kept:
        raise UsageError(f"no pair can be read by this model: {counted(left_out)}")
    return kept


def split_by_task(pairs: Sequence[Pair], share: float, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Return pairs to learn from and pairs held out, of different tasks. Raises UsageError."""
    tasks = sorted({pair.task for pair in pairs})
    if len(tasks) < 2:
        raise UsageError("all pairs are of one task; some of others are needed to measure on")
    Random(seed).shuffle(tasks)
    held = {*tasks[: max(1, round(share * len(tasks)))]}
    taught = [pair for pair in pairs if pair.task not in held]
    return taught, [pair for pair in pairs if pair.task in held]


def rank(arguments: argparse.Namespace, pairs: Sequence[Pair], left_out: LeftOut) -> None:
    """Train on answers, measure on held-out tasks, write the model, and print the facts."""
    check_out(arguments.out, arguments.force)
    check_devices()
    scorer = load_scorer(find_model(arguments.base), arguments.seed)
    pairs = fitting(pairs, scorer, left_out)
    taught, held = split_by_task(pairs, HELD_OUT, arguments.seed)
    print(
        f"{len(taught)} pairs to learn from, {len(held)} of other tasks held out", file=sys.stderr
    )
    rows = []
    for pair in taught:
        chosen = scorer.tokens(pair.question, pair.chosen.answer)
        rejected = scorer.tokens(pair.question, pair.rejected.answer)
        rows.append({"chosen_ids": chosen, "rejected_ids": rejected})

    def trainer_in(work: Path) -> AnswerPairTrainer:
        rank = arguments.lora_rank
        return AnswerPairTrainer(
            model=scorer.model,
            args=RewardConfig(**trainer_settings(work, arguments, len(rows))),
            train_dataset=Dataset.from_list(rows),
            processing_class=scorer.tokenizer,
            peft_config=adapter(rank, "SEQ_CLS") if rank else None,
            callbacks=[Shown("reward model")],
        )

    def write(trained: Any, facts: dict[str, Any], draft: Path) -> None:
        save(trained, scorer.tokenizer, draft)
        measure(draft, held, facts)
        text = json.dumps(facts, ensure_ascii=False, indent=1) + "\n"
        (draft / FACTS).write_text(text, encoding="utf-8")

    about = {"agent": arguments.agent, "model": arguments.base, "pairs": len(taught)}
    about["left_out"] = dict(left_out)
    facts = learn(arguments, about, rows, ("loss", "accuracy", "margin"), trainer_in, write)
    print(json.dumps({name: facts[name] for name in facts if name != "curve"}, ensure_ascii=False))
    if not facts["calibrated"]:
        raise Failure(
            f"{arguments.out} is written, but its scores do not tell better "
            "answers of held-out tasks from worse ones, so it has no map "
            "to [0, 1]; train longer, on more pairs, or another --base"
        )


def measure(folder: Path, held: Sequence[Pair], facts: dict[str, Any]) -> None:
    """Score the held-out answers, add what was found to the facts, and write the map to [0, 1]."""
    scorer = load_scorer(folder)
    good = scorer.scores([(pair.question, pair.chosen.answer) for pair in held])
    bad = scorer.scores([(pair.question, pair.rejected.answer) for pair in held])
    right = sum(better > worse for better, worse in zip(good, bad, strict=True))
    p = float(binomtest(right, len(held), alternative="greater").pvalue)
    facts["held_out"] = {"pairs": len(held), "accuracy": round(right / len(held), 4), "p": p}
    facts["calibrated"] = p < LUCK
    if facts["calibrated"]:
        # The probability that an answer beats one of middling score, in Bradley and Terry's model,
        # which the loss fits
        scale = {"kind": "logistic", "center": fmean([*good, *bad]), "scale": 1.0}
        write_jsonl(folder / SCALE, [scale], force=True)
