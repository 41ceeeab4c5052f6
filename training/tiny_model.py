"""The tiny model itself: its sizes, the optimizers that make it learn, and the files other programs expect.

Used by `training/cold_start.py`, which says what for.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

from sql_agent.prompts import PROMPT_VERSION
from training.tiny_tokenizer import name_the_usual_class


def build_model(tokenizer: Any, seed: int) -> Any:
    """Return a randomly initialised Qwen3; sizes that vLLM's CPU attention serves (head_dim 32)."""
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
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        initializer_range=0.07,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config)


def fast_optimizers(model: Any) -> list[torch.optim.Optimizer]:
    """For learning from nothing: Muon on the matrices, AdamW on the rest; AdamW alone often misses copying."""
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in named if p.ndim != 2 or "embed" in name]
    muon = torch.optim.Muon(matrices, lr=0.012, momentum=0.95, weight_decay=0.05, adjust_lr_fn="original")
    return [muon, torch.optim.AdamW(others, lr=3e-3, betas=(0.9, 0.98))]


def gentle_optimizer(model: Any) -> torch.optim.Optimizer:
    """For changing decisions without unlearning to copy."""
    return torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98))


def write_model(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write weights in bfloat16, configuration and tokenizer; the model in memory stays as it is."""
    model.generation_config = GenerationConfig(eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    copy.deepcopy(model).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    name_the_usual_class(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["rope_theta"] = config["rope_parameters"]["rope_theta"]  # read by everything older than transformers 5
    config["prompt_version"] = PROMPT_VERSION
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
