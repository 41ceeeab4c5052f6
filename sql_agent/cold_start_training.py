"""The tiny model itself: its sizes, how conversations become training examples, how it is trained and saved.

Used by `sql_agent/cold_start.py`, which says what for. Imports torch and transformers inside its functions.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sql_agent.demonstrations import Conversation
from sql_agent.prompts import PROMPT_VERSION, TOOL
from sql_agent.tiny_tokenizer import name_the_usual_class

WARM_UP = 50  # steps
WINDOW = 50  # steps over which accuracy is averaged


@dataclass(frozen=True)
class Course:
    """How long to train: full speed until the accuracy of the last 50 steps reaches `target`, then `decay` steps in
    which the learning rate falls to 0; never more than `limit` steps in all."""

    name: str
    limit: int
    decay: int
    target: float = math.inf


@dataclass(frozen=True)
class Outcome:
    """Steps taken, and the teacher-forced accuracy of the last 50."""

    steps: int
    accuracy: float


@dataclass
class Example:
    """One conversation as token ids, with the positions that carry loss."""

    ids: list[int]
    learned: list[bool]


def build_model(tokenizer: Any, seed: int) -> Any:
    """Return a randomly initialised Qwen3; sizes that vLLM's CPU attention serves (head_dim 32)."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        intermediate_size=192,
        rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        initializer_range=0.07,
        eos_token_id=end,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config)


def encode(conversation: Conversation, tokenizer: Any) -> Example:
    """Render with the chat template and mark what the model itself has to write, the closing tag included."""
    tools = [TOOL] if conversation.tools else None
    text = tokenizer.apply_chat_template(conversation.messages, tools=tools, tokenize=False)
    ids = tokenizer.encode(text, add_special_tokens=False)
    opening = tokenizer.encode("<|im_start|>assistant\n", add_special_tokens=False)
    end, learned, turns = tokenizer.eos_token_id, [False] * len(ids), iter(conversation.learn)
    for start in range(len(ids) - len(opening)):
        if ids[start : start + len(opening)] == opening:
            stop = ids.index(end, start)
            learned[start + len(opening) : stop + 1] = [next(turns)] * (stop + 1 - start - len(opening))
    return Example(ids, learned)


def batches(examples: Sequence[Example], size: int, rng: random.Random, alike: bool) -> Iterator[list[Example]]:
    """Yield batches in random order, pass after pass, without end; `alike`: of similar length, which is faster.

    Length gives a decision away (without a query a conversation is short), so batches for learning decisions must be
    mixed: alike ones would pull towards one choice, then towards the other.
    """
    while True:
        order = sorted(range(len(examples)), key=lambda i: (len(examples[i].ids) if alike else 0) + 4 * rng.random())
        groups = [order[at : at + size] for at in range(0, len(order) - size + 1, size)]
        rng.shuffle(groups)
        for group in groups:
            yield [examples[i] for i in group]


def loss_of(model: Any, batch: Sequence[Example], pad: int) -> tuple[Any, float]:
    """Return the mean cross-entropy of the learned tokens, and the share that greedy decoding would get right."""
    import torch

    width = max(len(example.ids) for example in batch)
    ids = torch.tensor([example.ids + [pad] * (width - len(example.ids)) for example in batch])
    learned = torch.tensor([example.learned + [False] * (width - len(example.learned)) for example in batch])
    # Padding is on the right and attention causal: no learned token ever sees it.
    hidden = model.model(input_ids=ids).last_hidden_state[:, :-1][learned[:, 1:]]
    logits, targets = model.lm_head(hidden), ids[:, 1:][learned[:, 1:]]
    return torch.nn.functional.cross_entropy(logits, targets), (logits.argmax(-1) == targets).float().mean().item()


def fast_optimizers(model: Any) -> list[Any]:
    """For learning from nothing: Muon on the matrices, AdamW on the rest; AdamW alone often misses copying."""
    import torch

    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in named if p.ndim != 2 or "embed" in name]
    muon = torch.optim.Muon(matrices, lr=0.012, momentum=0.95, weight_decay=0.05, adjust_lr_fn="original")
    return [muon, torch.optim.AdamW(others, lr=3e-3, betas=(0.9, 0.98))]


def gentle_optimizers(model: Any) -> list[Any]:
    """For changing decisions without unlearning to copy."""
    import torch

    return [torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98))]


def train(model: Any, optimizers: Sequence[Any], stream: Iterator[list[Example]], course: Course, pad: int) -> Outcome:
    """Train until the course is over; print a line every 100 steps."""
    import torch

    bases = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]
    recent: deque[float] = deque(maxlen=WINDOW)
    step, slow_from = 0, course.limit - course.decay
    model.train()
    while step < slow_from + course.decay:
        if step < slow_from and len(recent) == WINDOW and sum(recent) / WINDOW >= course.target:
            slow_from = step
        factor = min(1.0, (step + 1) / WARM_UP) if step < slow_from else 1 - (step - slow_from) / course.decay
        for optimizer, rates in zip(optimizers, bases, strict=True):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * factor
        loss, accuracy = loss_of(model, next(stream), pad)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        recent.append(accuracy)
        step += 1
        if step % 100 == 0:
            average = sum(recent) / len(recent)
            print(f"{course.name}: step {step}, loss {loss.item():.3f}, accuracy {average:.3f}", flush=True)
    return Outcome(step, sum(recent) / len(recent))


def save(model: Any, tokenizer: Any, out: Path) -> None:
    """Write the folder beside its final place and swap it in, so that a half-written model is never found."""
    import torch
    from transformers import GenerationConfig

    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-"))
    model.generation_config = GenerationConfig(eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    model.to(torch.bfloat16).save_pretrained(fresh)
    tokenizer.save_pretrained(fresh)
    name_the_usual_class(fresh)
    config = json.loads((fresh / "config.json").read_text())
    config["rope_theta"] = config["rope_parameters"]["rope_theta"]  # read by everything older than transformers 5
    config["prompt_version"] = PROMPT_VERSION
    (fresh / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    for path in (fresh, *fresh.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    shutil.rmtree(out, ignore_errors=True)
    os.replace(fresh, out)
