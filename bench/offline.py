"""The tokens a second that vLLM alone generates, for the calls that a run's rollouts made.

The episodes are those whose tokens the run kept, repeated until they are as many as a step has. All
calls are given to vLLM at once, in a process of its own, with the run's threads and precision.
"""

import json
import os
import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bench.plain_update import kept_sequences
from common.settings import ROOT
from training.report.summary import read_lines
from training.setup.device import environment, in_bfloat16

IN_FLIGHT = 128
CACHE_BYTES = 2**30
Call = tuple[list[int], int]  # the tokens before a reply, and how many the reply has


def tokens_per_s(run_dir: Path, model: str, rollouts: float) -> float:
    kept = calls_of(kept_sequences(run_dir))
    episodes = sum(1 for row in read_lines(run_dir / "episodes.jsonl") if row.get("tokens"))
    calls = list(islice(cycle(kept), round(len(kept) * rollouts / episodes)))
    done = subprocess.run(
        [sys.executable, "-c", f"from bench.offline import generate; generate({model!r})"],
        cwd=ROOT,
        env=os.environ | environment("cpu", model),
        input=json.dumps(calls),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout.splitlines()[-1])


def calls_of(sequences: list[list[dict[str, Any]]]) -> list[Call]:
    found = []
    for parts in sequences:
        before: list[int] = []
        for part in parts:
            if part["trained"]:
                found.append((list(before), len(part["ids"])))
            before += part["ids"]
    return found


def generate(model: str) -> None:
    """Read calls from standard input, and print the tokens a second of the second of two rounds."""
    import time

    from vllm import LLM, SamplingParams

    calls: list[Call] = json.load(sys.stdin)
    engine = LLM(
        model,
        dtype="bfloat16" if in_bfloat16(model) else "float32",
        enforce_eager=True,
        kv_cache_memory_bytes=CACHE_BYTES,
        max_num_seqs=IN_FLIGHT,
        distributed_executor_backend="uni",
        enable_prefix_caching=True,
    )
    prompts: Any = [{"prompt_token_ids": before} for before, _ in calls]
    sampling = [
        SamplingParams(temperature=1.0, max_tokens=length, min_tokens=length, ignore_eos=True)
        for _, length in calls
    ]
    for _ in range(2):
        engine.reset_prefix_cache()
        began = time.perf_counter()
        engine.generate(prompts, sampling, use_tqdm=False)
        taken = time.perf_counter() - began
    print(sum(length for _, length in calls) / taken)
