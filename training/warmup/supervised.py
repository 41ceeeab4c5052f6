"""Supervised training on conversations, with a loss on the assistant's tokens only.

transformers' Trainer has no two optimizers at once, no logits of learned positions only and no
learning rate that falls when the examples are mastered (docs/decisions.md).
"""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import psutil
import torch
from jinja2 import TemplateError
from peft import LoraConfig, get_peft_model
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForCausalLM, AutoTokenizer

from common.command import UsageError
from common.files import replacing
from common.terminal import progress, watched
from episodes.episode import Conversation
from training.cpu.memory import give_back
from training.cpu.prefix_tree import HEAD_ROWS, ancestors, deal, grow, reads_trees
from training.setup.chat_template import with_tools
from training.setup.device import in_bfloat16, is_large
from training.setup.model_folder import MODEL_FILES, count_weights, digest_of, find_model
from training.setup.plan import ConfigError
from training.warmup.examples import (
    NOT_LEARNED,
    Batch,
    ColdStartError,
    Example,
    batches,
    encode,
    groups_of,
)
from training.warmup.steps import KeptSteps, PreciseAdamW, Schedule, uninterrupted
from training.warmup.work_folder import work_folder, work_path

WARM_UP_SHARE = 0.1
# Of a learned weight: in bfloat16 gradient, copy and two moments beside it, in 32 bit all but the
# copy, which is the weight itself
LEARNED_BYTES = 16
SAVED_BYTES, KEPT_BYTES = 2, 12  # of a weight in the folder; of a learned one among kept steps
# Numbers in memory, measured with TREE_TOKENS and a model of 0.5 billion parameters
ACTIVATIONS = 750_000_000
TREE_TOKENS = 2048  # computed at once: 2 GB of activations of a model of 0.5 billion parameters


def learn_padded(model: Any, batch: Batch) -> float:
    """Learn from examples side by side, and return the accuracy of the learned tokens."""
    batch = {name: tensor.to(model.device) for name, tensor in batch.items()}
    learned = batch["labels"][:, 1:] != NOT_LEARNED
    (columns,) = learned.any(dim=0).nonzero(as_tuple=True)
    kept = learned[:, columns]
    targets = batch["labels"][:, 1:][learned]
    # Computing other logits would be most of a small model's work
    logits = model(batch["input_ids"], logits_to_keep=columns, use_cache=False).logits[kept].float()
    torch.nn.functional.cross_entropy(logits, targets).backward()
    return (logits.argmax(-1) == targets).float().mean().item()


def learn_trees(model: Any, examples: Sequence[Example]) -> float:
    """Learn from examples whose shared beginnings are computed once."""
    learned = 0
    for example in examples:
        learned += sum(label != NOT_LEARNED for label in example["labels"][1:])
    right = 0
    for places in deal([one["input_ids"] for one in examples], TREE_TOKENS):
        loss, hits = loss_of_tree(model, [examples[place] for place in places])
        (loss / learned).backward()
        right += hits
    return right / learned


def loss_of_tree(model: Any, examples: Sequence[Example]) -> tuple[torch.Tensor, int]:
    """Return the cross-entropy of all learned tokens, and how many greedy decoding would get right.

    Logits are made again for their gradients, HEAD_ROWS at a time.
    """
    tree = grow([example["input_ids"] for example in examples])
    nodes: list[int] = []
    labels: list[int] = []
    for way, example in zip(tree.nodes, examples, strict=True):
        for node, label in zip(way, example["labels"][1:], strict=False):
            if label != NOT_LEARNED:
                nodes.append(node)
                labels.append(label)
    read = model.base_model(
        input_ids=torch.tensor([tree.tokens]),
        position_ids=torch.tensor([tree.positions]),
        attention_mask=ancestors(tree)[None, None].to(model.dtype),
        use_cache=False,
    ).last_hidden_state[0, nodes]

    def head_loss(hidden: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, int]:
        logits = model.lm_head(hidden).float()
        loss = torch.nn.functional.cross_entropy(logits, target, reduction="sum")
        return loss, int((logits.argmax(-1) == target).sum())

    targets = torch.tensor(labels)
    total = torch.zeros(())
    right = 0
    for hidden, target in zip(read.split(HEAD_ROWS), targets.split(HEAD_ROWS), strict=True):
        loss, hits = checkpoint(head_loss, hidden, target, use_reentrant=False)
        total = total + loss
        right += hits
    return total, right


def train(
    title: str,
    model: Any,
    optimizers: Sequence[torch.optim.Optimizer],
    data: Sequence[Any],
    schedule: Schedule,
    random: Random,
    learn: Callable[[Any, Any], float] = learn_padded,
    kept: KeptSteps | None = None,
) -> None:
    """Train in place until the schedule ends, on a GPU if there is one. data: what `learn` takes.

    The same arguments and machine give the same weights, also where `kept` has the first steps.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rates = [torch.optim.lr_scheduler.LambdaLR(one, schedule.factor) for one in optimizers]
    model.to(device).train()
    if kept:
        kept.restore(schedule)
    for rate in rates:
        rate.last_epoch = schedule.steps
    # What `kept` has is drawn again and skipped, so that the rest is what it would have been
    batches_left = islice(schedule.until_end(data, random), schedule.steps, None)
    with progress(title, schedule.end, "steps") as bar:
        bar.initial = bar.n = schedule.steps  # the rate counts only later ones
        try:
            for batch in batches_left:
                with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                    accuracy = learn(model, batch)
                with uninterrupted():
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    for part in (*optimizers, *rates):
                        part.step()
                    model.zero_grad()
                    schedule.update(accuracy)
                bar.total = schedule.end  # comes nearer once the examples are mastered
                bar.set_postfix(accuracy=f"{schedule.accuracy:.3f}", refresh=False)
                bar.update()
                if kept:
                    kept.save_at_times(schedule)
        except KeyboardInterrupt:
            if kept:
                kept.save_and_tell(schedule)
            raise


def warm_up(
    base: str,
    conversations: Iterable[Conversation],
    out: Path,
    epochs: float,
    lr: float,
    batch_size: int,
    seed: int,
    lora_rank: int = 0,
    most: int | None = None,
    anew: bool = False,
) -> dict[str, Any]:
    """Train a model (folder or hub id) on conversations and write it to `out`.

    Return the steps taken and the accuracy of the last 50. lora_rank: 0 to train all weights.
    most: learn from the first so many that can be learned, None from all.
    anew: forget the steps of another warm-up to `out` that was stopped. Raises ColdStartError: no
    conversation can be learned, or memory or disk is too small. Raises UsageError: the model cannot
    be loaded, or another warm-up to `out` began.
    """
    short = not torch.cuda.is_available() and in_bfloat16(base)
    dtype = torch.bfloat16 if short else torch.float32
    if is_large(base):
        parameters = count_weights(find_model(base))
        check_memory(parameters, dtype, all_weights=not lora_rank)
        check_disk(out, parameters * (SAVED_BYTES if lora_rank else SAVED_BYTES + KEPT_BYTES))
    model, tokenizer, context = load_model(base, dtype)
    fitting = _examples(base, conversations, tokenizer, context, most)
    random = Random(seed)
    torch.manual_seed(seed)
    adapted = get_peft_model(model, adapter(lora_rank)) if lora_rank else None
    if torch.cuda.is_available() or not reads_trees(model.config):
        pad = tokenizer.pad_token_id
        pad = tokenizer.eos_token_id if pad is None else pad
        learn: Callable[[Any, Any], float] = learn_padded
        data: list[Any] = batches(fitting, batch_size, pad, random)
    else:
        learn = learn_trees
        data = groups_of(fitting, batch_size, random)
        if is_large(base):
            save_memory(model)
    steps = max(1, round(epochs * len(data)))
    rise = max(1, round(WARM_UP_SHARE * steps))
    schedule = Schedule(steps, max(1, steps - rise), rise)
    # Before the optimizers, which hold copies of the weights beside them
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    print(f"{steps} steps of up to {batch_size} examples", file=sys.stderr)
    began = {
        "base": digest_of(find_model(base), MODEL_FILES),
        "examples": hashlib.sha256(json.dumps(fitting).encode()).hexdigest(),
        "epochs": epochs,
        "lr": lr,
        "batch_size": batch_size,
        "seed": seed,
        "lora_rank": lora_rank,
    }
    # An optimizer a weight, so that one gradient at a time is in memory in 32 bit
    optimizers = [PreciseAdamW(weight, lr) for weight in weights]
    with work_folder(out, began, anew) as work:
        kept = KeptSteps(work, optimizers)
        train("warm-up", model, optimizers, data, schedule, random, learn, kept)
        with replacing(out) as folder:
            save(adapted.merge_and_unload() if adapted else model, tokenizer, folder)
    return {"steps": schedule.steps, "accuracy": schedule.accuracy}


def _examples(
    base: str,
    conversations: Iterable[Conversation],
    tokenizer: Any,
    context: int,
    most: int | None,
) -> list[Example]:
    """Return what fits the model's context. The tokenizer's template shows tools from here on."""
    count = used = 0
    fitting: list[Example] = []
    try:
        taught = list(conversations)
        if any(conversation.tools for conversation in taught):
            tokenizer.chat_template = with_tools(str(tokenizer.chat_template))
        for conversation in watched(taught, "encoding", "conversations"):
            if used == most:
                break
            examples = encode(conversation, tokenizer)
            fits = [example for example in examples if len(example["input_ids"]) <= context]
            fitting += fits
            count += len(examples)
            used += bool(fits)
    except (TemplateError, ConfigError) as error:
        raise ColdStartError(
            f"--base {base}: its chat template refuses the conversations: {error}"
        ) from None
    if not fitting:
        raise ColdStartError(
            f"none of {count} demonstrations fits the model's context of {context} tokens"
        )
    told = f"{used} demonstrations of {len(taught)}; {len(fitting)} examples of {count}"
    print(f"{told} fit the context", file=sys.stderr)
    return fitting


def check_memory(parameters: int, dtype: torch.dtype, all_weights: bool) -> None:
    """Say what training on this machine's CPU takes. Raises ColdStartError: more than there is."""
    if torch.cuda.is_available():
        return
    held = LEARNED_BYTES if all_weights else dtype.itemsize  # bytes of a weight
    needed = held * parameters + dtype.itemsize * ACTIVATIONS
    available = psutil.virtual_memory().available
    said = f"the warm-up needs {needed / 1e9:.1f} GB of memory and has {available / 1e9:.1f} GB"
    if available < needed:
        raise ColdStartError(f"{said}; end other programs, or train an adapter with --lora-rank 16")
    print(said, file=sys.stderr)


def check_disk(out: Path, needed: int) -> None:
    """Raise ColdStartError if the disk has no room for the model beside the steps that are kept."""
    place = next(folder for folder in out.resolve().parents if folder.is_dir())
    kept = sum(path.stat().st_size for path in work_path(out).rglob("*"))
    free = shutil.disk_usage(place).free + kept
    if free < needed:
        said = f"the warm-up needs {needed / 1e9:.1f} GB of disk, {place} has {free / 1e9:.1f} GB"
        raise ColdStartError(f"{said}; free some, take --out elsewhere, or --lora-rank 16")


def save_memory(model: Any) -> None:
    """Keep only every second layer's activations: a sixth more work for half the memory."""
    give_back()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    for layer in model.base_model.layers[1::2]:
        layer.gradient_checkpointing = False


def load_model(name: str, dtype: torch.dtype) -> tuple[Any, Any, int]:
    """Return a language model, from a folder or the hub, its tokenizer, and its context in tokens.

    Raises UsageError: it cannot be loaded, or has no chat template.
    """
    folder = find_model(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise UsageError(
            f"{name} cannot be loaded: {first}; give a model folder or a hub id"
        ) from None
    if not tokenizer.chat_template:
        raise UsageError(f"{name} has no chat template; take its instruction-tuned version")
    context = getattr(model.config, "max_position_embeddings", None) or sys.maxsize
    return model, tokenizer, int(context)


def adapter(rank: int) -> LoraConfig:
    """Return the settings of an adapter on all linear layers, at the scale that training uses."""
    return LoraConfig(
        r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM"
    )


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write weights and tokenizer. The model in memory becomes bfloat16, too."""
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)
