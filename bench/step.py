"""Measure where the seconds of a training step go, with the real engine on this machine.

    .venv/bin/python -m bench.step [--steps 3]  # two to four minutes on two cores, one line of JSON last

It trains the bundled tiny model (16 questions x 8 episodes a step) and reports: seconds to the
first step, seconds a step by phase, update and log-probabilities over the same work without verl
(bench/plain_update.py), tokens a second of the rollouts over those of vLLM alone
(bench/offline.py), the KL between vLLM and the trainer a token in the worst step, seconds from the
last episode's end to verl's start on the batch, rollouts a second while rolling out, and the peak
of memory. Which process works when until the first step is drawn to standard error
(bench/timeline.py).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from bench import offline, plain_update
from bench._harness import main, sampled
from bench.timeline import EVERY, draw, processes_below
from common.settings import ROOT
from training.report.summary import PHASES, read_lines, read_timeline
from training.setup.ports import free_port

PROGRAM = ("train_sql_agent.py", "--ci")
OVERRIDES = ("trainer.val_before_train=false", "trainer.test_freq=-1", "trainer.save_freq=-1")


def train(run_dir: Path, steps: int, program: Sequence[str] = PROGRAM) -> float:
    """Run a training program, drawn to standard error. Return its peak of memory in GiB."""
    command = [sys.executable, *program, "--run-dir", str(run_dir), *OVERRIDES]
    command.append(f"trainer.total_training_steps={steps}")
    environment = {**os.environ, "AGL_SERVER_PORT": str(free_port("127.0.0.1"))}
    began = time.time()
    free = psutil.virtual_memory().available
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=sys.stderr)

    # Processes are sampled until the first step only, because that takes part of a core
    def sample() -> tuple[int, Any]:
        begun = "first_step" in read_timeline(run_dir)
        return psutil.virtual_memory().available, {} if begun else processes_below(process.pid)

    with sampled(sample, EVERY) as samples:
        try:
            code = process.wait()
        finally:
            process.terminate()  # a stopped bench ends its run, too
            process.wait()
    if code:
        raise subprocess.CalledProcessError(code, command)
    until = read_timeline(run_dir)["first_step"]
    print(draw([processes for _, processes in samples], began, until), file=sys.stderr)
    return (free - min(available for available, _ in samples)) / 2**30


def metrics(run_dir: Path) -> list[dict[str, Any]]:
    rows = [row["data"] for row in read_lines(run_dir / "metrics.jsonl")]
    return [row for row in rows if "timing_s/step" in row]


def report(run_dir: Path, peak_memory: float) -> dict[str, Any]:
    """Return what the run wrote, as medians over steps."""
    summary = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    steps = metrics(run_dir)
    per_step, end_to_update = (
        median(step[f"timing_s/{name}"] for step in steps) for name in ("step", "end_to_update")
    )
    phases = {
        name: median(step.get(key, 0.0) for step in steps)
        for name, key in PHASES.items()
        if any(key in step for step in steps)
    }
    rollouts = summary["rollouts"]["finished"] / len(steps)
    tokens = median(step["perf/total_num_tokens"] for step in steps)
    updating = phases["update"] + phases.get("log_prob", 0.0)
    plain = plain_update.seconds(run_dir, summary["model"], tokens)
    alone = offline.tokens_per_s(run_dir, summary["model"], rollouts)
    generated = summary["generated_tokens"] / len(steps) / phases["rollout"]
    by_phase = {**phases, "wait": per_step - sum(phases.values())}
    return {
        "steps": len(steps),
        "seconds_to_first_step": summary["seconds"]["to_first_step"],
        "seconds_per_step": round(per_step, 2),
        "seconds_by_phase": {name: round(value, 2) for name, value in by_phase.items()},
        "update_and_log_prob_s": round(updating, 2),
        "update_vs_plain": round(updating / plain, 2),
        "plain_update_s": round(plain, 2),
        "rollouts_vs_offline": round(generated / alone, 2),
        "rollout_tokens_per_s": round(generated, 1),
        "offline_tokens_per_s": round(alone, 1),
        "log_prob_mismatch": summary["signal"]["log_prob_mismatch"],
        "end_to_update_s": round(end_to_update, 3),
        "rollouts_per_second": round(rollouts / phases["rollout"], 2),
        "peak_memory_gib": round(peak_memory, 2),
    }


def measure(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        return report(run_dir, train(run_dir, options.steps))


if __name__ == "__main__":
    main(
        "step",
        __doc__,
        measure,
        {"--steps": {"type": int, "default": 3, "help": "steps to measure (default: 3)"}},
    )
