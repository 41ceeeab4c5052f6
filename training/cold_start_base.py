"""Supervised training of any Hugging Face model on an agent's demonstrations: `training.cold_start --base MODEL`.

The demonstrations are played in the agent's own environment, so the model sees the prompts, tool calls and results of
training, rendered with its own chat template.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import torch
from jinja2 import TemplateError
from transformers import AutoModelForCausalLM, AutoTokenizer

from episodes.agent import Conversation
from training.supervised import ColdStartError, Outcome, Schedule, batches, encode, replacing, train

WARM_UP_SHARE = 0.1


def warm_up(
    base: str, conversations: Iterable[Conversation], out: Path, epochs: float, lr: float, batch_size: int, seed: int
) -> Outcome:
    """Train `base` (folder or hub id) on conversations, on a GPU if there is one, and write it to `out`.

    Raises:
        ColdStartError: it cannot be loaded, or its tokenizer has no usable chat template.
    """
    tokenizer, model = _load(base)
    try:
        examples = [example for conversation in conversations for example in encode(conversation, tokenizer)]
    except TemplateError as error:
        raise ColdStartError(f"--base {base}: its chat template refuses the conversations: {error}") from None
    context = getattr(model.config, "max_position_embeddings", None) or sys.maxsize
    fitting = [example for example in examples if len(example["input_ids"]) <= context]
    if not fitting:
        raise ColdStartError(f"none of {len(examples)} demonstrations fits the model's context of {context} tokens")
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    data, steps = batches(fitting, batch_size, pad, Random(seed)), max(1, round(epochs * len(fitting) / batch_size))
    print(f"{len(fitting)} examples of {len(examples)} fit the context, {steps} steps", file=sys.stderr, flush=True)
    rise = max(1, round(WARM_UP_SHARE * steps))
    schedule = Schedule(steps, max(1, steps - rise), rise)
    outcome = train(model, torch.optim.AdamW(model.parameters(), lr=lr), data, schedule, seed)
    with replacing(out) as folder:
        model.to(torch.bfloat16).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return outcome


def _load(base: str) -> tuple[Any, Any]:
    """Tokenizer and model, weights in float32: bfloat16 ones would lose small updates."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(base)
        model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise ColdStartError(f"--base {base} cannot be loaded: {first}; give a model folder or a hub id") from None
    if not tokenizer.chat_template:
        raise ColdStartError(f"--base {base} has no chat template; take its instruction-tuned version")
    return tokenizer, model
