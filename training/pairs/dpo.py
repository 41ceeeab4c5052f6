"""Direct preference optimization on pairs of whole episodes, by TRL.

TRL's own preparation counts everything behind the prompt as the policy's, words of tools and
partners included. So pairs are encoded here, by the warm-up's encoder.
"""

import argparse
import hashlib
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from jinja2 import TemplateError
from peft import PeftModel
from torch.nn.utils.rnn import pad_sequence
from transformers import PrinterCallback, TrainerCallback
from transformers.utils import logging
from trl import DPOConfig, DPOTrainer

from common.command import UsageError
from common.files import replacing
from common.terminal import progress, watched
from episodes.episode import Conversation
from training.pairs.pair import LeftOut, Pair, counted, longer_wins, replies_of
from training.setup.chat_template import keep_thinking, with_tools
from training.setup.model_folder import MODEL_FILES, digest_of, find_model
from training.warmup.examples import NOT_LEARNED, ColdStartError, encode
from training.warmup.supervised import adapter, load_model, save
from training.warmup.work_folder import check_out, work_folder

FACTS = "preferences.json"
# Flags that change the weights
LEARNS = ("epochs", "lr", "batch_size", "lora_rank", "seed", "beta")
SIDES = ("chosen", "rejected")
LOGGED = ("step", "loss", "rewards/accuracies", "rewards/margins", "logps/chosen", "logps/rejected")
CHECKPOINTS = 10  # in the course of a training
KEPT = 2
STATE = "trainer_state.json"  # a checkpoint's last file
WARM_UP = 0.1
FEW = 20  # steps, with which there is no warm-up: its first step has the rate 0 and is lost
Row = dict[str, list[int]]


class EpisodePairTrainer(DPOTrainer):
    """TRL's trainer on rows that are encoded already (`encoded`)."""

    def _prepare_dataset(self, dataset: Dataset, *_: Any) -> Dataset:
        return dataset

    def _send_telemetry(self) -> None:
        """Send nothing: TRL would report its use to its makers."""


class Shown(TrainerCallback):
    """Show the progress of a training as all programs here do."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.bar = progress("DPO", state.max_steps, "steps")
        self.bar.update(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.bar.update()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.bar.close()


def load(folder: Path, tools: bool, thinking: bool) -> tuple[Any, Any, int]:
    """Return model, tokenizer and context in tokens. `thinking`: the template keeps thoughts."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    # bfloat16 would lose small updates
    model, tokenizer, context = load_model(str(folder), torch.float32)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    template = str(tokenizer.chat_template)
    template = with_tools(template) if tools else template
    tokenizer.chat_template = keep_thinking(template, tools) if thinking else template
    return model, tokenizer, context


def encoded(pairs: Sequence[Pair], tokenizer: Any, context: int, left_out: LeftOut) -> list[Row]:
    """Return a row a pair: token ids of both sides, and masks, 1 on what the policy wrote.

    Raises UsageError: none can be encoded. `left_out` gets the reasons.
    """
    rows = []
    for pair in watched(pairs, "encoding", "pairs"):
        try:
            sides = []
            for side in (pair.chosen, pair.rejected):
                told = Conversation(side, [True] * len(replies_of(side)), pair.tools)
                sides.append(encode(told, tokenizer))
        except (TemplateError, TypeError, ColdStartError):
            left_out["the chat template refuses the messages"] += 1
            continue
        if any(len(examples) != 1 for examples in sides):
            left_out["the chat template rewrites earlier turns (see --keep-thinking)"] += 1
            continue
        row = {}
        for name, examples in zip(SIDES, sides, strict=True):
            example = examples[0]
            row[name] = example["input_ids"]
            row[f"{name}_mask"] = [int(label != NOT_LEARNED) for label in example["labels"]]
        if max(len(row[name]) for name in SIDES) > context:
            left_out[f"longer than the model's {context} positions"] += 1
            continue
        rows.append(row)
    if not rows:
        raise UsageError(f"no pair can be learned by this model: {counted(left_out)}")
    return rows


def collate(pad: int, rows: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Return TRL's batch: chosen, then rejected, padded to (2 x pairs, longest)."""
    ids = []
    masks = []
    for name in SIDES:
        ids += [torch.tensor(row[name]) for row in rows]
        masks += [torch.tensor(row[f"{name}_mask"]) for row in rows]
    batch = {
        "input_ids": pad_sequence(ids, True, pad),
        "attention_mask": pad_sequence([torch.ones_like(one) for one in ids], True, 0),
        "completion_mask": pad_sequence(masks, True, 0),
    }
    for name in ("ref_chosen_logps", "ref_rejected_logps"):
        if name in rows[0]:
            batch[name] = torch.tensor([row[name] for row in rows])
    return batch


def last_checkpoint(work: Path) -> str | None:
    """Return the newest complete checkpoint of a work folder, or None. Half a one is removed."""
    found = sorted(work.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    while found:
        with suppress(OSError, ValueError):
            json.loads((found[-1] / STATE).read_text(encoding="utf-8"))
            return str(found[-1])
        shutil.rmtree(found.pop())
    return None


def settings_of(work: Path, arguments: argparse.Namespace, pairs: int) -> DPOConfig:
    """Return TRL's settings."""
    gpu = torch.cuda.is_available()
    steps = max(1, math.ceil(pairs / arguments.batch_size) * arguments.epochs)
    return DPOConfig(
        output_dir=str(work),
        num_train_epochs=arguments.epochs,
        learning_rate=arguments.lr,
        warmup_steps=round(WARM_UP * steps) if steps > FEW else 0,
        per_device_train_batch_size=arguments.batch_size,
        seed=arguments.seed,
        save_steps=max(1, round(steps / CHECKPOINTS)),
        save_total_limit=KEPT,
        logging_steps=1,
        bf16=gpu,
        use_cpu=not gpu,
        gradient_checkpointing=gpu,  # a small model on a CPU has room
        dataloader_pin_memory=gpu,
        disable_tqdm=True,
        report_to="none",
        max_length=None,  # what does not fit was left out, and is never cut
        remove_unused_columns=False,
        beta=arguments.beta,
        precompute_ref_log_probs=True,  # no second model in memory
        precompute_ref_batch_size=arguments.batch_size,
    )


def prefer(arguments: argparse.Namespace, pairs: Sequence[Pair], left_out: LeftOut) -> None:
    """Train on the pairs, write the model, and print the facts as JSON."""
    check_out(arguments.out, arguments.force)
    if torch.cuda.device_count() > 1 and "LOCAL_RANK" not in os.environ:
        raise UsageError(
            f"{torch.cuda.device_count()} GPUs are seen, and TRL uses one; choose it with "
            "CUDA_VISIBLE_DEVICES=0"
        )
    folder = find_model(arguments.model)
    tools = any(pair.tools for pair in pairs)
    model, tokenizer, context = load(folder, tools, arguments.keep_thinking)
    rows = encoded(pairs, tokenizer, context, left_out)
    print(f"{len(rows)} pairs of {len(pairs)} can be encoded", file=sys.stderr)
    flags = {name: getattr(arguments, name) for name in LEARNS}
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    began = {"model": digest_of(folder, MODEL_FILES), "pairs": digest, **flags}
    started = time.monotonic()
    with work_folder(arguments.out, began, arguments.force) as work:
        rank = arguments.lora_rank
        trainer = EpisodePairTrainer(
            model=model,
            args=settings_of(work, arguments, len(rows)),
            train_dataset=Dataset.from_list([*rows]),
            data_collator=partial(collate, tokenizer.pad_token_id),
            processing_class=tokenizer,
            peft_config=adapter(rank) if rank else None,
            callbacks=[Shown()],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=last_checkpoint(work))
        curve = []
        for line in trainer.state.log_history:
            if "loss" in line:  # others are of the whole training
                curve.append({name: round(line[name], 5) for name in LOGGED if name in line})
        trained = trainer.accelerator.unwrap_model(trainer.model)
        if isinstance(trained, PeftModel):
            trained = trained.merge_and_unload()
        facts: dict[str, Any] = {
            "agent": arguments.agent,
            "model": arguments.model,
            "pairs": len(rows),
            "longer_wins": longer_wins(pairs),
            "left_out": dict(left_out),
            **flags,
            "seconds": round(time.monotonic() - started, 1),  # since the last start
            "steps": trainer.state.global_step,
        }
        with replacing(arguments.out) as draft:
            trained.config.use_cache = True  # transformers' trainer turned it off
            save(trained, tokenizer, draft)
            text = json.dumps(facts | {"curve": curve}, ensure_ascii=False, indent=1) + "\n"
            (draft / FACTS).write_text(text, encoding="utf-8")
    print(json.dumps(facts | {"last": curve[-1]}, ensure_ascii=False))
