"""Supervised training on conversations, with transformers' Trainer: loss on the assistant's tokens and no others.

Both halves of the cold start use it: the tiny model made from nothing (`training/tiny_model.py`) and the warm-up
of any other model (`training/cold_start_base.py`). What Trainer does not have is here: which tokens are learned, two
optimizers at once, and a pace that slows down when the model has mastered its examples.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from sql_agent.demonstrations import Conversation
from sql_agent.prompts import TOOL

NOT_LEARNED = -100
WINDOW = 50  # steps over which accuracy is averaged
REPORT_EVERY = 100  # steps
Example = dict[str, list[int]]


class TemplateError(ValueError):
    """A chat template that conversations of the agent cannot be rendered with."""


@dataclass(frozen=True)
class Course:
    """How long to train: up to full speed in `warm_up` steps, on until the accuracy of the last 50 steps reaches
    `target`, then `decay` steps in which the learning rate falls to 0; never more than `limit` steps in all.

    `alike`: batches of examples of similar length, which is faster. Length gives a decision away (without a query a
    conversation is short), so batches for learning decisions must be mixed.
    """

    name: str
    limit: int
    decay: int
    batch_size: int
    warm_up: int
    target: float = math.inf
    alike: bool = False


@dataclass(frozen=True)
class Outcome:
    """Steps taken, and the teacher-forced accuracy of the last 50."""

    steps: int
    accuracy: float


def encode(conversation: Conversation, tokenizer: Any) -> list[Example]:
    """Render with the model's chat template and mark what the model itself has to write, the closing mark included.

    A turn is rendered as it is generated: the prompt up to it, then the turn. Turns share an example while each
    prompt continues the one before; templates that rewrite earlier turns (Qwen3 drops their empty thoughts) get one
    example a turn.

    Raises:
        TemplateError: a turn's prompt is no beginning of the conversation with the turn.
    """
    messages, tools = [_parsed(m) for m in conversation.messages], [TOOL] if conversation.tools else None

    def render(end: int, opened: bool) -> str:
        return str(
            tokenizer.apply_chat_template(messages[:end], tools=tools, add_generation_prompt=opened, tokenize=False)
        )

    turns = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    rendered: list[tuple[str, list[tuple[int, int]]]] = []
    for at, learn in zip(turns, conversation.learn, strict=True):
        if not learn:
            continue
        prompt, whole = render(at, opened=True), render(at + 1, opened=False).rstrip()
        if not whole.startswith(prompt):
            raise TemplateError("the chat template renders a conversation differently once the reply is there")
        spans = rendered.pop()[1] if rendered and prompt.startswith(rendered[-1][0]) else []
        rendered.append((whole, [*spans, (len(prompt), len(whole))]))
    return [_tokens(text, spans, tokenizer) for text, spans in rendered]


def _parsed(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message as servers hand it to templates: arguments of tool calls as an object, not as JSON text."""
    if not message.get("tool_calls"):
        return dict(message)
    calls = [
        {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def _tokens(text: str, spans: Sequence[tuple[int, int]], tokenizer: Any) -> Example:
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    labels = [
        token if any(start <= left and right <= end for start, end in spans) else NOT_LEARNED
        for token, (left, right) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
    ]
    return {"input_ids": encoded["input_ids"], "labels": labels}


class Pace(TrainerCallback):
    """Sets the learning rate by a course, stops at its end, and prints where training stands."""

    def __init__(self, course: Course) -> None:
        self.course, self.slow_from = course, course.limit - course.decay
        self.accuracies: deque[float] = deque(maxlen=WINDOW)
        self.losses: deque[float] = deque(maxlen=WINDOW)
        self.started = time.monotonic()

    @property
    def accuracy(self) -> float:
        """Share of learned tokens that greedy decoding would get right, over the last steps."""
        return sum(self.accuracies) / len(self.accuracies)

    def factor(self, step: int) -> float:
        """What the learning rate is multiplied by in a step, counted from 0."""
        up = min(1.0, (step + 1) / self.course.warm_up)
        return min(up, max(0.0, 1 - (step - self.slow_from) / self.course.decay))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        step = state.global_step
        if step < self.slow_from and len(self.accuracies) == WINDOW and self.accuracy >= self.course.target:
            self.slow_from = step
        control.should_training_stop = step >= self.slow_from + self.course.decay
        if step % REPORT_EVERY == 0 or control.should_training_stop:
            self._report(step)

    def _report(self, step: int) -> None:
        last = self.slow_from + self.course.decay
        minutes = (time.monotonic() - self.started) / step * (last - step) / 60
        loss = sum(self.losses) / len(self.losses)
        print(
            f"{self.course.name}: step {step} of at most {last}, loss {loss:.3f}, accuracy {self.accuracy:.3f}, "
            f"at most {minutes:.1f} minutes left",
            file=sys.stderr,
            flush=True,
        )


class SupervisedTrainer(Trainer):
    """Trainer with logits only where something is learned, and with the accuracy of every step."""

    def __init__(self, pace: Pace, **named: Any) -> None:
        super().__init__(callbacks=[pace], **named)
        self.pace, self.model_accepts_loss_kwargs = pace, False
        self.remove_callback(PrinterCallback)

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        if not self.pace.course.alike:
            return super()._get_train_sampler(train_dataset)
        lengths = [len(example["input_ids"]) for example in self.train_dataset]
        return AlikeSampler(lengths, self.pace.course.batch_size, self.args.seed)

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Mean cross-entropy of the learned tokens; logits of the other positions would be most of a small model."""
        learned = inputs["labels"][:, 1:] != NOT_LEARNED
        (columns,) = learned.any(dim=0).nonzero(as_tuple=True)
        outputs = model(input_ids=inputs["input_ids"], logits_to_keep=columns, use_cache=False)
        kept = learned[:, columns]
        logits, targets = outputs.logits[kept].float(), inputs["labels"][:, 1:][:, columns][kept]
        loss = torch.nn.functional.cross_entropy(logits, targets)
        self.pace.accuracies.append((logits.argmax(-1) == targets).float().mean().item())
        self.pace.losses.append(loss.item())
        return (loss, outputs) if return_outputs else loss


class AlikeSampler(torch.utils.data.Sampler[int]):
    """Indices in batches of similar length, the batches in random order (Trainer's own has the long ones first)."""

    def __init__(self, lengths: Sequence[int], size: int, seed: int) -> None:
        self.lengths, self.size, self.rng = lengths, size, random.Random(seed)

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        order = sorted(range(len(self)), key=lambda i: self.lengths[i] + 4 * self.rng.random())
        groups = [order[at : at + self.size] for at in range(0, len(order) - self.size + 1, self.size)]
        self.rng.shuffle(groups)
        return (index for group in groups for index in group)


class Collator:
    """Pads on the right. Attention is causal, so no learned token sees the padding, and no mask is needed."""

    def __init__(self, pad: int) -> None:
        self.pad = pad

    def __call__(self, batch: Sequence[Example]) -> dict[str, torch.Tensor]:
        width = max(len(example["input_ids"]) for example in batch)
        fills = {"input_ids": self.pad, "labels": NOT_LEARNED}
        return {
            key: torch.tensor([example[key] + [fill] * (width - len(example[key])) for example in batch])
            for key, fill in fills.items()
        }


class Together(torch.optim.Optimizer):
    """Several optimizers of different parameters as the one that Trainer expects."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer]) -> None:
        super().__init__([dict(group) for part in parts for group in part.param_groups], {})
        self.parts = parts

    def step(self, closure: Any = None) -> None:
        """Hand on the learning rates a scheduler has set here, and step every part; Trainer passes no closure."""
        rates = [group["lr"] for group in self.param_groups]
        for group, rate in zip((g for part in self.parts for g in part.param_groups), rates, strict=True):
            group["lr"] = rate
        for part in self.parts:
            part.step()


def train(
    model: Any, optimizer: torch.optim.Optimizer, examples: Sequence[Example], course: Course, pad: int, seed: int
) -> Outcome:
    """Train in place until the course is over. Same arguments, seed and machine: same weights."""
    pace = Pace(course)
    cuda = torch.cuda.is_available()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=course.limit,
            per_device_train_batch_size=course.batch_size,
            max_grad_norm=1.0,
            seed=seed,
            use_cpu=not cuda,
            bf16=cuda,
            dataloader_drop_last=len(examples) >= course.batch_size,
            dataloader_pin_memory=cuda,
            remove_unused_columns=False,
            use_cache=True,  # what config.json will say; false would make generation slow
            logging_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = SupervisedTrainer(
            pace,
            model=model,
            args=arguments,
            train_dataset=list(examples),
            data_collator=Collator(pad),
            optimizers=(optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, pace.factor)),
        )
        trainer.train()
    return Outcome(trainer.state.global_step, pace.accuracy)


@contextlib.contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Give a folder beside `out` to write into, and swap it in at the end: a half-written model is never found."""
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-"))
    try:
        yield fresh
        for path in (fresh, *fresh.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        shutil.rmtree(out, ignore_errors=True)
        os.replace(fresh, out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
