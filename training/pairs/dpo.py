"""Direct preference optimization on pairs of whole episodes, by TRL.

TRL's own preparation counts everything behind the prompt as the policy's, words of tools and
partners included. So pairs are encoded here, by the warm-up's encoder.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from jinja2 import TemplateError
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM
from trl import DPOConfig, DPOTrainer

from common.command import UsageError
from common.terminal import watched
from episodes.episode import Conversation
from training.pairs.asked import counted, longer_wins
from training.pairs.pair import LeftOut, Pair
from training.pairs.trainers import (
    Shown,
    Silent,
    check_devices,
    learn,
    load_padded,
    trainer_settings,
)
from training.setup.chat_template import keep_thinking, with_tools
from training.setup.model_folder import find_model
from training.warmup.examples import NOT_LEARNED, ColdStartError, encode
from training.warmup.supervised import adapter, save
from training.warmup.work_folder import check_out

FACTS = "preferences.json"
SIDES = ("chosen", "rejected")
METRICS = ("loss", "rewards/accuracies", "rewards/margins", "logps/chosen", "logps/rejected")
Row = dict[str, list[int]]


class EpisodePairTrainer(Silent, DPOTrainer):
    """TRL's trainer on rows that are encoded already (`encoded`)."""

    def _prepare_dataset(self, dataset: Dataset, *_: Any) -> Dataset:
        return dataset


def load(folder: Path, tools: bool, thinking: bool) -> tuple[Any, Any, int]:
    """Return model, tokenizer and context in tokens. The template shows `tools`, keeps thoughts."""
    model, tokenizer = load_padded(folder, AutoModelForCausalLM)
    template = str(tokenizer.chat_template)
    template = with_tools(template) if tools else template
    tokenizer.chat_template = keep_thinking(template, tools) if thinking else template
    context = getattr(model.config, "max_position_embeddings", None) or sys.maxsize
    return model, tokenizer, int(context)


def encoded(pairs: Sequence[Pair], tokenizer: Any, context: int, left_out: LeftOut) -> list[Row]:
    """Return a row a pair: token ids of both sides, and masks, 1 on what the policy wrote.

    Raises UsageError: none can be encoded. `left_out` gets the reasons.
    """
    rows = []
    for pair in watched(pairs, "encoding", "pairs"):
        try:
            sides = []
            for side in (pair.chosen, pair.rejected):
                told = Conversation(side.messages, [True] * len(side.replies), pair.tools)
                sides.append(encode(told, tokenizer))
        except (TemplateError, TypeError, ColdStartError):
            left_out["the chat template refuses the messages"] += 1
            continue
        if any(len(examples) != 1 for examples in sides):
            left_out["the chat template rewrites earlier turns (see --keep-thinking)"] += 1
        elif max(len(example["input_ids"]) for [example] in sides) > context:
            left_out[f"longer than the model's {context} positions"] += 1
        else:
            row = {}
            for name, [example] in zip(SIDES, sides, strict=True):
                row[name] = example["input_ids"]
                row[f"{name}_mask"] = [int(label != NOT_LEARNED) for label in example["labels"]]
            rows.append(row)
    if not rows:
        raise UsageError(f"no pair can be learned by this model: {counted(left_out)}")
    return rows


def collator(pad: int) -> Callable[[Sequence[dict[str, Any]]], dict[str, torch.Tensor]]:
    """Return what makes TRL's batch: chosen, then rejected, padded to (2 x pairs, longest)."""

    def collate(rows: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
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

    return collate


def prefer(arguments: argparse.Namespace, pairs: Sequence[Pair], left_out: LeftOut) -> None:
    """Train on the pairs, write the model, and print the facts as JSON."""
    check_out(arguments.out, arguments.force)
    check_devices()
    tools = any(pair.tools for pair in pairs)
    folder = find_model(arguments.model)
    model, tokenizer, context = load(folder, tools, arguments.keep_thinking)
    rows = encoded(pairs, tokenizer, context, left_out)
    print(f"{len(rows)} pairs of {len(pairs)} can be encoded", file=sys.stderr)

    def trainer_in(work: Path) -> EpisodePairTrainer:
        config = DPOConfig(
            **trainer_settings(work, arguments, len(rows)),
            beta=arguments.beta,
            precompute_ref_log_probs=True,  # no second model in memory
            precompute_ref_batch_size=arguments.batch_size,
        )
        rank = arguments.lora_rank
        return EpisodePairTrainer(
            model=model,
            args=config,
            train_dataset=Dataset.from_list([*rows]),
            data_collator=collator(tokenizer.pad_token_id),
            processing_class=tokenizer,
            peft_config=adapter(rank, "CAUSAL_LM") if rank else None,
            callbacks=[Shown("DPO")],
        )

    def write(trained: Any, facts: dict[str, Any], draft: Path) -> None:
        trained.config.use_cache = True  # transformers' trainer turned it off
        save(trained, tokenizer, draft)
        text = json.dumps(facts, ensure_ascii=False, indent=1) + "\n"
        (draft / FACTS).write_text(text, encoding="utf-8")

    about = {"agent": arguments.agent, "model": arguments.model, "pairs": len(rows)}
    about |= {"longer_wins": longer_wins(pairs), "left_out": dict(left_out)}
    facts = learn(arguments, about, rows, METRICS, trainer_in, write)
    last = facts.pop("curve")[-1]
    print(json.dumps(facts | {"last": last}, ensure_ascii=False))
