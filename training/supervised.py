"""Supervised training on conversations, with transformers' Trainer: loss on the assistant's tokens and no others.

    examples = [example for conversation in conversations for example in encode(conversation, tokenizer)]
    train(model, optimizer, batches(examples, 8, pad, Random(seed)), Schedule(limit=100, decay=90, warm_up=10), seed)

Both halves of the cold start use it. What Trainer does not have is here: which tokens are learned, and a learning rate
that falls when the model has mastered its examples.
"""

from __future__ import annotations

import copy
import json
import math
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import Trainer, TrainerCallback, TrainingArguments

from episodes.agent import Conversation, Message

NOT_LEARNED = -100
WINDOW = 50  # steps over which accuracy is averaged
Example = dict[str, list[int]]
Batch = dict[str, torch.Tensor]


class ColdStartError(RuntimeError):
    """A model, its data or its evaluation that cannot be used; one line that says what to do."""


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
        ColdStartError: a turn's prompt is no beginning of the conversation with the turn.
    """
    messages, tools = [_parsed(message) for message in conversation.messages], [*conversation.tools] or None

    def render(end: int, opened: bool) -> str:
        given = {"tools": tools, "add_generation_prompt": opened, "tokenize": False}
        return str(tokenizer.apply_chat_template(messages[:end], **given))

    turns = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    rendered: list[tuple[str, list[tuple[int, int]]]] = []
    for at, learn in zip(turns, conversation.learn, strict=True):
        if not learn:
            continue
        prompt, whole = render(at, opened=True), render(at + 1, opened=False).rstrip()
        if not whole.startswith(prompt):
            raise ColdStartError("the chat template renders a conversation differently once the reply is there")
        spans = rendered.pop()[1] if rendered and prompt.startswith(rendered[-1][0]) else []
        rendered.append((whole, [*spans, (len(prompt), len(whole))]))
    return [_tokens(text, spans, tokenizer) for text, spans in rendered]


def _parsed(message: Message) -> Message:
    """The message as servers hand it to templates: arguments of tool calls as an object, not as JSON text."""
    message = copy.deepcopy(message)
    for call in message.get("tool_calls") or []:
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return message


def _tokens(text: str, spans: Sequence[tuple[int, int]], tokenizer: Any) -> Example:
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    labels = [
        token if any(start <= left and right <= end for start, end in spans) else NOT_LEARNED
        for token, (left, right) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
    ]
    return {"input_ids": encoded["input_ids"], "labels": labels}


def batches(examples: Sequence[Example], size: int, pad: int, random: Random, alike: bool = False) -> list[Batch]:
    """Token ids and labels of `size` examples each, (size, longest); too few for a batch make one, a rest is left out.

    Padded on the right: attention is causal, so no learned token sees it, and no mask is needed. `alike`: examples of
    similar length, which is faster. Length gives a decision away (without a query a conversation is short), so batches
    for learning decisions must be mixed.
    """
    order = sorted(examples, key=lambda example: alike * len(example["input_ids"]) + 4 * random.random())
    groups = [order[at : at + size] for at in range(0, max(1, len(order) - size + 1), size)]
    fills = {"input_ids": pad, "labels": NOT_LEARNED}
    return [
        {key: pad_sequence([torch.tensor(e[key]) for e in group], True, fill) for key, fill in fills.items()}
        for group in groups
    ]


class Schedule(TrainerCallback):
    """The learning rate rises for `warm_up` steps, stays until the accuracy of the last 50 steps reaches `target`, then
    falls to 0 in `decay` steps, which ends the training; never more than `limit` steps in all.
    """

    def __init__(self, limit: int, decay: int, warm_up: int, target: float = math.inf) -> None:
        self.limit, self.decay, self.warm_up, self.target = limit, decay, warm_up, target
        self.decay_from = limit - decay
        self.accuracies: deque[float] = deque(maxlen=WINDOW)

    @property
    def accuracy(self) -> float:
        """Share of learned tokens that greedy decoding would get right, over the last steps."""
        return sum(self.accuracies) / len(self.accuracies)

    def factor(self, step: int) -> float:
        """What the learning rate is multiplied by in a step, counted from 0."""
        return min(1.0, (step + 1) / self.warm_up, max(0.0, 1 - (step - self.decay_from) / self.decay))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        step = state.global_step
        if step < self.decay_from and len(self.accuracies) == WINDOW and self.accuracy >= self.target:
            self.decay_from = step
        control.should_training_stop = step >= self.decay_from + self.decay


class SupervisedTrainer(Trainer):
    """Trainer with logits only where something is learned, and with the accuracy of every step."""

    def __init__(self, schedule: Schedule, **named: Any) -> None:
        super().__init__(callbacks=[schedule], **named)
        self.schedule = schedule

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Mean cross-entropy of the learned tokens; logits of the other positions would be most of a small model."""
        learned = inputs["labels"][:, 1:] != NOT_LEARNED
        (columns,) = learned.any(dim=0).nonzero(as_tuple=True)
        outputs = model(input_ids=inputs["input_ids"], logits_to_keep=columns, use_cache=False)
        kept = learned[:, columns]
        logits, targets = outputs.logits[kept].float(), inputs["labels"][:, 1:][:, columns][kept]
        self.schedule.accuracies.append((logits.argmax(-1) == targets).float().mean().item())
        return torch.nn.functional.cross_entropy(logits, targets)

    def log(self, logs: Mapping[str, float], start_time: float | None = None) -> None:
        """Say how well the examples are mastered, too."""
        super().log({**logs, "accuracy": self.schedule.accuracy}, start_time)


def train(
    model: Any, optimizer: torch.optim.Optimizer, data: Sequence[Batch], schedule: Schedule, seed: int
) -> Outcome:
    """Train in place until the schedule ends. Same arguments, seed and machine: same weights.

    Raises:
        ColdStartError: there is more than one GPU.
    """
    cuda = torch.cuda.is_available()
    if torch.cuda.device_count() > 1:
        raise ColdStartError(f"{torch.cuda.device_count()} GPUs are visible; set CUDA_VISIBLE_DEVICES=0 to use one")
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=schedule.limit,
            per_device_train_batch_size=1,  # of the batches in `data`
            max_grad_norm=1.0,
            seed=seed,
            use_cpu=not cuda,
            bf16=cuda,
            dataloader_pin_memory=cuda,
            remove_unused_columns=False,
            use_cache=True,  # what config.json will say; false would make generation slow
            logging_steps=100,
            save_strategy="no",
            report_to=[],
        )
        trainer = SupervisedTrainer(
            schedule,
            model=model,
            args=arguments,
            train_dataset=data,
            data_collator=itemgetter(0),
            optimizers=(optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, schedule.factor)),
        )
        trainer.train()
    return Outcome(trainer.state.global_step, schedule.accuracy)


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Give a folder beside `out` to write into, and swap it in at the end: a half-written model is never there."""
    out = out.resolve()
    draft = out.with_name(f".{out.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        yield draft
        shutil.rmtree(out, ignore_errors=True)
        draft.rename(out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
