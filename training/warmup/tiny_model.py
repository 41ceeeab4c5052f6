"""Make a tiny model for an agent from nothing.

Phase A uses right demonstrations, until the model copies names and values well. Phase B is a short
run on imperfect ones, so that reinforcement learning has decisions to correct.
"""

import copy
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import torch
from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

from common.files import replacing
from common.settings import Settings
from episodes.agent import Agent, Row
from episodes.episode import Conversation
from training.warmup.examples import ColdStartError, batches, encode_all
from training.warmup.steps import KeptSteps, Schedule
from training.warmup.supervised import save, train
from training.warmup.tiny_tokenizer import make_tokenizer
from training.warmup.work_folder import work_folder

HOW_LONG = (
    "phase A then takes at most {} steps and ends earlier once copying is learned: the bundled "
    "models took 8 to 20 minutes of one core in all. After Ctrl-C the same command goes on"
)
BATCH_A = 8
BATCH_B = 16
CONVERSATIONS_A = 12_000  # different conversations in phase A. Further steps repeat them
# Copying comes suddenly, after 1,000 to 4,000 steps, different from run to run: phase A waits for it
MASTERY = 0.992
DECAY_A = 400
WARM_UP = 50
SAVED_EVERY = 30.0  # seconds: a tiny model is written in milliseconds
# Most of phase A goes without system prompt and tools: steps are three times shorter, and copying
# is the same skill.
BARE_SHARE = 0.75


def make(
    agent: Agent,
    rows: Sequence[Row],
    settings: Settings,
    steps: tuple[int, int],
    seed: int,
    out: Path,
    mastered: Path | None,
    anew: bool = False,
) -> dict[str, Any]:
    """Train both phases, write the folders `mastered` (after A) and `out`, and return the facts.

    A killed command goes on from the last step of phase A. anew: forget the steps of another one.
    steps: of phase A at most, and of phase B, which an agent without imperfect demonstrations does
    not have. Raises ColdStartError: there is nothing to learn. Raises UsageError: another began.
    """
    torch.set_num_threads(1)
    steps_a, steps_b = steps
    started = time.process_time()
    random = Random(seed)
    print(f"making conversations; {HOW_LONG.format(steps_a)}", file=sys.stderr)
    most = min(CONVERSATIONS_A, BATCH_A * steps_a)
    lessons = agent.lessons(rows, settings, most, BATCH_B * steps_b, random)
    if not lessons.right:
        raise ColdStartError("these rows have nothing to learn; give others with --train-file")
    right = [_bare(one) if random.random() < BARE_SHARE else one for one in lessons.right]
    sizes = agent.sizes("cpu")
    tokenizer = make_tokenizer(right, lessons, sizes.prompt + sizes.response, random)
    examples_a = encode_all(right, tokenizer)
    examples_b = encode_all(lessons.flawed, tokenizer)
    model = build_model(tokenizer, seed)
    optimizers = fast_optimizers(model)
    schedule = Schedule(steps_a, max(1, min(DECAY_A, steps_a // 2)), WARM_UP, MASTERY)
    data = batches(examples_a, BATCH_A, tokenizer.pad_token_id, random, alike=True)
    digest = hashlib.sha256(repr((right, lessons.flawed)).encode()).hexdigest()
    began = {"lessons": digest, "steps": list(steps), "seed": seed}
    with work_folder(out, began, anew) as work:
        kept = KeptSteps(work, optimizers, model, SAVED_EVERY)
        train("phase A", model, optimizers, data, schedule, random, kept=kept)
        if mastered:
            write_model(model, tokenizer, mastered)
        if examples_b:
            imperfect = batches(examples_b, BATCH_B, tokenizer.pad_token_id, random)
            # A gentle rate, so that the model still copies
            gentle = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
            falling = Schedule(steps_b, max(1, steps_b // 2), WARM_UP)
            train("phase B", model, [gentle], imperfect, falling, random)
        with replacing(out) as folder:
            write_model(model, tokenizer, folder)
    return {
        "parameters": f"{model.num_parameters():,}",
        "vocabulary": len(tokenizer),
        "seed": seed,
        "steps_a": schedule.steps,
        "batch_a": BATCH_A,
        "accuracy_a": round(schedule.accuracy, 4),
        "steps_b": steps_b if examples_b else 0,
        "batch_b": BATCH_B,
        "minutes": round((time.process_time() - started) / 60, 1),
        "torch": torch.__version__,
        **lessons.facts,
    }


def _bare(conversation: Conversation) -> Conversation:
    begins = 1 if conversation.messages[0]["role"] == "system" else 0
    return replace(conversation, messages=conversation.messages[begins:], tools=())


def build_model(tokenizer: Any, seed: int) -> Any:
    """Return a randomly initialised Qwen3 that vLLM's CPU attention serves (head_dim 32)."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        intermediate_size=192,
        rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
        max_position_embeddings=tokenizer.model_max_length,
        tie_word_embeddings=True,
        initializer_range=0.07,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config)


def fast_optimizers(model: Any) -> list[torch.optim.Optimizer]:
    """Return Muon for the matrices, and for the rest AdamW, which alone often fails to copy."""
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in named if p.ndim != 2 or "embed" in name]
    muon = torch.optim.Muon(
        matrices, lr=0.012, momentum=0.95, weight_decay=0.05, adjust_lr_fn="original"
    )
    return [muon, torch.optim.AdamW(others, lr=3e-3, betas=(0.9, 0.98))]


def write_model(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write weights, configuration and tokenizer. The model in memory stays as it is."""
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    save(copy.deepcopy(model), tokenizer, folder)
    # Readers other than transformers 5 know neither its name of the class nor its place of theta
    added = {
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast"},
        "config.json": {"rope_theta": model.config.rope_parameters["rope_theta"]},
    }
    for name, values in added.items():
        config = json.loads((folder / name).read_text(encoding="utf-8")) | values
        text = json.dumps(config, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
        (folder / name).write_text(text, encoding="utf-8")
