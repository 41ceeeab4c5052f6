"""The supervised phase before reinforcement learning, for any Hugging Face model: gold episodes of the training split.

Used by `python -m training.cold_start --base MODEL`. Every gold statement is run by the project's tool, so the model
sees the prompts, tool calls and results of training, rendered with its own chat template.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from data.load import statements
from sql_agent.baseline import gold_episode
from sql_agent.demonstrations import Conversation
from tools.sql.query import QueryTool
from training.supervised import Course, Outcome, TemplateError, encode, replacing, train

WARM_UP_SHARE = 0.1


class BaseError(RuntimeError):
    """A model that cannot be warmed up here; one line that says what to do."""


@dataclass(frozen=True)
class Recipe:
    """What the flags --epochs, --lr, --batch-size and --max-steps say."""

    epochs: float
    lr: float
    batch_size: int
    max_steps: int | None = None


def gold_conversations(rows: Sequence[dict[str, Any]], tool: QueryTool) -> list[Conversation]:
    """The episodes of a policy that runs the gold SQL and gives the gold answer, one a row that has both."""
    told = [gold_episode(r["question"], statements(r), r["answer"], tool) for r in rows if r["sql"] and r["answer"]]
    failed = next((result.error for episode in told for result in episode.tool_results if not result.ok), None)
    if failed:
        raise BaseError(f"a gold statement of the training split fails: {failed}; is DATABASE_URL the right database?")
    return [Conversation(episode.messages, [True] * episode.turns) for episode in told]


def warm_up(
    base: str, rows: Sequence[dict[str, Any]], tool: QueryTool, recipe: Recipe, seed: int, out: Path
) -> Outcome:
    """Train `base` (folder or hub id) on gold episodes, on a GPU if there is one, and write it to `out`.

    Raises:
        BaseError: it cannot be loaded, its tokenizer has no usable chat template, or there is more than one GPU.
    """
    if torch.cuda.device_count() > 1:
        raise BaseError(f"{torch.cuda.device_count()} GPUs are visible; set CUDA_VISIBLE_DEVICES=0 to use one")
    tokenizer, model = _load(base)
    try:
        examples = [e for told in gold_conversations(rows, tool) for e in encode(told, tokenizer)]
    except (TemplateError, ValueError) as error:
        raise BaseError(f"{base}: {error}") from None
    context = getattr(model.config, "max_position_embeddings", None) or sys.maxsize
    fitting = [e for e in examples if len(e["input_ids"]) <= context]
    if not fitting:
        raise BaseError("no training row has gold SQL and a gold answer that fit the model's context")
    random.Random(seed).shuffle(fitting)
    steps = max(1, round(recipe.epochs * len(fitting) / recipe.batch_size))
    steps = min(steps, recipe.max_steps or steps)
    print(f"{len(fitting)} examples of {len(examples)} fit the context, {steps} steps", file=sys.stderr, flush=True)
    rise = max(1, round(WARM_UP_SHARE * steps))
    course = Course("warm-up", steps, max(1, steps - rise), recipe.batch_size, rise)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    outcome = train(model, torch.optim.AdamW(model.parameters(), lr=recipe.lr), fitting, course, pad, seed)
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
        raise BaseError(f"--base {base} cannot be loaded: {first}; give a model folder or a hub id") from None
    if not tokenizer.chat_template:
        raise BaseError(f"--base {base} has no chat template; take its instruction-tuned version")
    return tokenizer, model
