"""The update of a training step without verl: only the model's own work.

It runs in one process with the threads of the trainer's worker, by PyTorch and transformers alone:
every sequence by itself (so nothing is padded), forward, backward, and one step of AdamW at the
end. The sequences are those whose tokens the run kept, repeated until they have as many tokens as a
step.
"""

import time
from itertools import cycle
from pathlib import Path
from typing import Any

from training.report.summary import read_lines
from training.setup.device import THREADS, environment, in_bfloat16

WARM_UP = 8  # sequences


def kept_sequences(run_dir: Path) -> list[list[dict[str, Any]]]:
    """Return the sequences of the run's sample, each a list of parts {"trained": bool, "ids":
    [...]}.
    """
    rows = read_lines(run_dir / "episodes.jsonl")
    return [sequence for row in rows for sequence in row.get("tokens") or []]


def seconds(run_dir: Path, model: str, tokens: float) -> float:
    """Return the wall-clock seconds of one update, after a few sequences that only warm up."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(int(environment("cpu", model)[THREADS]))
    short = in_bfloat16(model)
    policy = AutoModelForCausalLM.from_pretrained(
        model, dtype=torch.float32, attn_implementation="sdpa"
    )
    optimizer = torch.optim.AdamW(policy.parameters(), lr=0.0)
    batch = []
    left = tokens
    kept = cycle(kept_sequences(run_dir))
    while left > 0:
        parts = next(kept)
        ids = torch.tensor([[token for part in parts for token in part["ids"]]])
        trained = torch.tensor([part["trained"] for part in parts for _ in part["ids"]])
        batch.append((ids, trained[1:]))
        left -= ids.numel()
    for sequences in (batch[:WARM_UP], batch):
        began = time.perf_counter()
        for ids, trained in sequences:
            with torch.autocast("cpu", torch.bfloat16, enabled=short):
                logits = policy(ids[:, :-1], use_cache=False).logits[0, trained].float()
            chosen = logits.log_softmax(-1).gather(1, ids[0, 1:][trained][:, None])
            (-chosen.sum() / tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
    return time.perf_counter() - began
