"""What a training step of a real language model costs, with the real engine on this machine.

    make real-model
    python -m bench.real_model [--steps 2] [--model models/warm]    # ten minutes; one line of JSON last

It trains the diagnosis agent with the model (4 cases x 8 episodes a step, replies of at most 128
tokens) and reports what `bench.step` does, and:

- rollouts_vs_offline: tokens a second that a step's rollouts generate, over those of vLLM alone on
  prompts and replies of the same lengths, all given to it at once, with the run's threads and
  precision. Prompts and lengths are those of the episodes whose tokens the run kept.
- log_prob_mismatch: KL between vLLM and the trainer, a token, in the worst step.

Without the model it says so in its line, and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bench._harness import main
from bench.plain_update import kept_sequences
from bench.step import report, train
from common.settings import ROOT
from training.setup.device import environment, has_bfloat16
from training.watch.summary import read_lines

MODEL = ROOT / "models" / "smollm2-135m"
REPLY = 128  # tokens
IN_FLIGHT = 32
CACHE_BYTES = 2**30
Call = tuple[list[int], int]  # the tokens before a reply, and how many the reply has


def calls_of(sequences: list[list[dict[str, Any]]]) -> list[Call]:
    """Return the calls that a run's kept sequences were made of."""
    found = []
    for parts in sequences:
        before: list[int] = []
        for part in parts:
            if part["trained"]:
                found.append((list(before), len(part["ids"])))
            before += part["ids"]
    return found


def offline_tokens_per_s(model: str, calls: list[Call]) -> float:
    """Return the tokens a second that vLLM alone generates for the calls, in a process of its own."""
    script = f"from bench.real_model import generate; generate({model!r})"
    variables = os.environ | environment("cpu", model)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=variables,
        input=json.dumps(calls),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout.splitlines()[-1])


def generate(model: str) -> None:
    """Read calls from standard input, and print the tokens a second of the second of two rounds."""
    import time

    from vllm import LLM, SamplingParams

    calls: list[Call] = json.load(sys.stdin)
    engine = LLM(
        model,
        dtype="bfloat16" if has_bfloat16() else "float32",
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


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Train in a temporary folder, and return the figures."""
    if not options.model.is_dir():
        return {"skipped": f"there is no folder {options.model}; run: make real-model"}
    program = ("train_diagnosis_agent.py", "--ci", "--model", str(options.model))
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        os.environ["MAX_TOKENS"] = str(REPLY)
        memory = train(run_dir, options.steps, program)
        figures = report(run_dir, memory)
        summary = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
        kept = calls_of(kept_sequences(run_dir))
        episodes = summary["rollouts"]["finished"] / figures["steps"]
        rows = [row for row in read_lines(run_dir / "episodes.jsonl") if row.get("tokens")]
        calls = list(islice(cycle(kept), round(len(kept) * episodes / len(rows))))
        offline = offline_tokens_per_s(str(options.model), calls)
    generated = summary["generated_tokens"] / figures["steps"]
    rollouts = generated / figures["seconds_by_phase"]["rollout"]
    return {
        **figures,
        "generated_tokens_per_step": round(generated),
        "rollout_tokens_per_s": round(rollouts, 1),
        "offline_tokens_per_s": round(offline, 1),
        "rollouts_vs_offline": round(rollouts / offline, 2),
        "log_prob_mismatch": summary["signal"]["log_prob_mismatch"],
    }


if __name__ == "__main__":
    main(
        "real_model",
        __doc__,
        measure,
        {
            "--steps": {"type": int, "default": 2, "help": "steps to measure (default: 2)"},
            "--model": {
                "type": Path,
                "default": MODEL,
                "help": "folder of the model, such as one that was warmed up (default: %(default)s)",
            },
        },
    )
