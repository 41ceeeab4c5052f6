"""Model, checkpoints and progress of both trainers of pairs."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from transformers import PrinterCallback, TrainerCallback
from transformers.utils import logging

from common.command import UsageError
from common.files import replacing
from common.terminal import progress
from training.setup.model_folder import find_model
from training.warmup.supervised import load_model
from training.warmup.work_folder import model_digest, work_folder

CHECKPOINTS = 10  # in the course of a training
KEPT = 2
STATE = "trainer_state.json"  # a checkpoint's last file
LEARNS = (
    "epochs",
    "lr",
    "batch_size",
    "lora_rank",
    "seed",
    "beta",
)  # flags that change the weights
WARM_UP = 0.1


def last_checkpoint(work: Path) -> str | None:
    """Return the newest complete checkpoint of a work folder, or None. Half a one is removed."""
    found = sorted(work.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    while found:
        with suppress(OSError, ValueError):
            json.loads((found[-1] / STATE).read_text(encoding="utf-8"))
            return str(found[-1])
        shutil.rmtree(found.pop())
    return None


def learn(
    arguments: argparse.Namespace,
    about: dict[str, Any],
    rows: Sequence[Any],
    metrics: Sequence[str],
    trainer_in: Callable[[Path], Any],
    write: Callable[[Any, dict[str, Any], Path], None],
) -> dict[str, Any]:
    """Train on from the last checkpoint, have the model and its facts written, and return these.

    about: the first facts. rows: what is learned. trainer_in: makes TRL's trainer, which saves
    checkpoints in a folder. write: takes the merged model, its facts and the folder for both.
    """
    flags = {name: value for name, value in vars(arguments).items() if name in LEARNS}
    digest = hashlib.sha256(repr(rows).encode()).hexdigest()
    began = {"model": model_digest(find_model(about["model"])), "pairs": digest, **flags}
    started = time.monotonic()
    with work_folder(arguments.out, began, arguments.force) as work:
        trainer = trainer_in(work)
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=last_checkpoint(work))
        curve = []
        for line in trainer.state.log_history:
            if "loss" in line:
                shown = ("step", *metrics)
                curve.append({name: round(line[name], 5) for name in shown if name in line})
        model = trainer.accelerator.unwrap_model(trainer.model)
        if isinstance(model, PeftModel):
            model = model.merge_and_unload()
        seconds = round(time.monotonic() - started, 1)  # since the last start
        steps = trainer.state.global_step
        facts = {**about, **flags, "seconds": seconds, "steps": steps, "curve": curve}
        with replacing(arguments.out) as draft:
            write(model, facts, draft)
    return facts


def load_padded(folder: Path, kind: Any, **options: Any) -> tuple[Any, Any]:
    """Return a folder's model of this class, and its tokenizer, which can pad. Raises UsageError."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    # bfloat16 would lose small updates
    model, tokenizer = load_model(str(folder), kind, torch.float32, **options)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer


def check_devices() -> None:
    """Raise UsageError where several GPUs are seen by one process, which TRL cannot use."""
    if torch.cuda.device_count() > 1 and "LOCAL_RANK" not in os.environ:
        raise UsageError(
            f"{torch.cuda.device_count()} GPUs are seen; choose one with CUDA_VISIBLE_DEVICES=0"
        )


def trainer_settings(work: Path, arguments: argparse.Namespace, pairs: int) -> dict[str, Any]:
    """Return the settings that the trainers of pairs have in common."""
    gpu = torch.cuda.is_available()
    steps = max(1, math.ceil(pairs / arguments.batch_size) * arguments.epochs)
    return {
        "output_dir": str(work),
        "num_train_epochs": arguments.epochs,
        "learning_rate": arguments.lr,
        "warmup_steps": max(1, round(WARM_UP * steps)),
        "per_device_train_batch_size": arguments.batch_size,
        "seed": arguments.seed,
        "save_steps": max(1, round(steps / CHECKPOINTS)),
        "save_total_limit": KEPT,
        "logging_steps": 1,
        "bf16": gpu,
        "use_cpu": not gpu,
        "gradient_checkpointing": gpu,  # a small model on a CPU has room
        "dataloader_pin_memory": gpu,
        "disable_tqdm": True,
        "report_to": "none",
        "max_length": None,  # what does not fit was left out, and is never cut
        "remove_unused_columns": False,
    }


class Silent:
    """A mixin for TRL's trainers, which report their use to their makers."""

    def _send_telemetry(self) -> None:
        """Send nothing."""


class Shown(TrainerCallback):
    """Show the progress of a training as all programs here do."""

    def __init__(self, title: str) -> None:
        self.title = title

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.bar = progress(self.title, state.max_steps, "steps")
        self.bar.update(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.bar.update()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.bar.close()
