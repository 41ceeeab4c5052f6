"""The training of a reward model on pairs of answers, by TRL.

pairs = fitting(pairs, scorer, left_out)
taught, held = split_by_task(pairs, 0.2, seed=0)
model, facts = train(scorer, taught, work, arguments)
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from datasets import Dataset
from jinja2 import TemplateError
from transformers import PrinterCallback
from trl import RewardConfig, RewardTrainer

from common.command import UsageError
from common.terminal import watched
from training.pairs.answers import AnswerPair
from training.pairs.checked import counted
from training.pairs.pair import LeftOut
from training.pairs.scorer import Scorer
from training.pairs.trainers import Shown, Silent, last_checkpoint, trainer_settings
from training.warmup.supervised import adapter


class AnswerPairTrainer(Silent, RewardTrainer):
    """TRL's trainer of reward models."""


def fitting(pairs: Sequence[AnswerPair], scorer: Scorer, left_out: LeftOut) -> list[AnswerPair]:
    """Return the pairs that the model can read; `left_out` gets the others by reason.

    Raises UsageError: it can read none.
    """
    kept = []
    for pair in watched(pairs, "encoding", "pairs"):
        try:
            longest = max(len(scorer.tokens(pair.question, text)) for text in pair.answers)
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


def train(
    scorer: Scorer, pairs: Sequence[AnswerPair], work: Path, arguments: argparse.Namespace
) -> tuple[Any, dict[str, Any]]:
    """Train, from the last checkpoint in `work` where there is one, and return the model, with the
    adapter merged into it, and what the training measured.
    """
    rank = arguments.lora_rank
    rows = [
        {
            "chosen_ids": scorer.tokens(pair.question, pair.chosen),
            "rejected_ids": scorer.tokens(pair.question, pair.rejected),
        }
        for pair in pairs
    ]
    trainer = AnswerPairTrainer(
        model=scorer.model,
        args=RewardConfig(**trainer_settings(work, arguments, len(rows))),
        train_dataset=Dataset.from_list(rows),
        processing_class=scorer.tokenizer,
        peft_config=adapter(rank, "SEQ_CLS") if rank else None,
        callbacks=[Shown("reward model")],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=last_checkpoint(work))
    trained = trainer.accelerator.unwrap_model(trainer.model)
    curve = [
        {name: round(line[name], 5) for name in ("step", "loss", "accuracy", "margin")}
        for line in trainer.state.log_history
        if "loss" in line
    ]
    return trained.merge_and_unload() if rank else trained, {
        "steps": trainer.state.global_step,
        "curve": curve,
    }


def split_by_task(
    pairs: Sequence[AnswerPair], share: float, seed: int
) -> tuple[list[AnswerPair], list[AnswerPair]]:
    """Return pairs to learn from and pairs held out, of different tasks.

    Raises UsageError: there are fewer than two tasks.
    """
    tasks = sorted({pair.task for pair in pairs})
    if len(tasks) < 2:
        raise UsageError("all pairs are of one task; some of others are needed to measure on")
    Random(seed).shuffle(tasks)
    held = {*tasks[: max(1, round(share * len(tasks)))]}
    return (
        [pair for pair in pairs if pair.task not in held],
        [pair for pair in pairs if pair.task in held],
    )
