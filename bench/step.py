"""Where the seconds of a training step go, with the real engine on this machine.

    python -m bench.step [--steps 3]         # two to four minutes on two cores; one line of JSON last

Trains the bundled tiny model (16 questions x 8 episodes a step) and says: seconds to the first step, seconds a step by
phase, seconds from the last episode's end to verl's start on the batch, rollouts a second while rolling out, the share
of rollout time in which vLLM had nothing to do (its engine process used less than 5 % of a core over 0.2 s), and the
peak of memory taken from the machine. README and docs/performance.md publish them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from bench._harness import main, sampled
from common.settings import ROOT
from training.ports import free_port
from training.summary import PHASES, read_lines

SAMPLE_SECONDS = 0.2
IDLE_SHARE_OF_A_CORE = 0.05
OVERRIDES = ("trainer.val_before_train=false", "trainer.test_freq=-1", "trainer.save_freq=-1")
# Unix seconds, the machine's free bytes, processor seconds of vLLM's engine (None: it does not run).
Sample = tuple[float, int, float | None]


class Observer:
    """Looks at the machine's memory and at vLLM's engine process, somewhere below this one."""

    def __init__(self) -> None:
        self._engine: psutil.Process | None = None

    def __call__(self) -> Sample:
        return time.time(), psutil.virtual_memory().available, self._engine_seconds()

    def _engine_seconds(self) -> float | None:
        try:
            if self._engine is None or not self._engine.is_running():
                self._engine = next(filter(_is_engine, psutil.Process().children(recursive=True)), None)
            used = self._engine.cpu_times() if self._engine else None
        except psutil.NoSuchProcess:
            return None
        return used.user + used.system if used else None


def _is_engine(process: psutil.Process) -> bool:
    try:
        return "EngineCore" in " ".join([process.name(), *process.cmdline()])
    except psutil.Error:  # ended meanwhile
        return False


def train(run_dir: Path, steps: int) -> list[Sample]:
    """Run the training command, its output to standard error; returns what was seen of the machine meanwhile."""
    command = [sys.executable, "train_sql_agent.py", "--ci", "--run-dir", str(run_dir), *OVERRIDES]
    environment = {**os.environ, "AGL_SERVER_PORT": str(free_port("127.0.0.1"))}
    with sampled(Observer(), SAMPLE_SECONDS) as samples:
        subprocess.run(
            [*command, f"trainer.total_training_steps={steps}"],
            cwd=ROOT,
            env=environment,
            stdout=sys.stderr,
            check=True,
        )
    return samples


def report(run_dir: Path, samples: Sequence[Sample]) -> dict[str, Any]:
    """What was measured, medians over steps."""
    summary = json.loads((run_dir / "summary.json").read_text())
    steps = [row["data"] for row in read_lines(run_dir / "metrics.jsonl") if "timing_s/step" in row["data"]]
    phases = {
        name: median(step.get(key, 0.0) for step in steps)
        for name, key in PHASES.items()
        if any(key in step for step in steps)
    }
    per_step = median(step["timing_s/step"] for step in steps)
    memory = [available for _, available, _ in samples]
    return {
        "steps": len(steps),
        "seconds_to_first_step": summary["seconds"]["to_first_step"],
        "seconds_per_step": round(per_step, 2),
        "seconds_by_phase": {name: round(value, 2) for name, value in phases.items()}
        | {"wait": round(per_step - sum(phases.values()), 2)},
        "end_to_update_s": round(median(step["timing_s/end_to_update"] for step in steps), 3),
        "rollouts_per_second": round(summary["rollouts"]["finished"] / len(steps) / phases["rollout"], 2),
        "vllm_idle_share_while_rolling_out": _idle_share(samples, _rollout_windows(run_dir, steps)),
        "peak_memory_gib": round((memory[0] - min(memory)) / 2**30, 2),
    }


def _rollout_windows(run_dir: Path, steps: Sequence[dict[str, float]]) -> list[tuple[float, float]]:
    """When rollouts ran, in Unix seconds, laid out from the first step's start by the steps' own timings."""
    begin = json.loads((run_dir / "timeline.json").read_text())["first_step"]
    windows = []
    for step in steps:
        windows.append((begin, begin + step[PHASES["rollout"]]))
        begin += step["timing_s/step"]
    return windows


def _idle_share(samples: Sequence[Sample], windows: Sequence[tuple[float, float]]) -> float | None:
    """Share of the samples inside the windows in which the engine did nothing; None without any."""
    used = [(now, cpu) for now, _, cpu in samples if cpu is not None]
    idle = [
        (cpu - last_cpu) / (now - last) < IDLE_SHARE_OF_A_CORE
        for (last, last_cpu), (now, cpu) in pairwise(used)
        if any(begin <= last and now <= end for begin, end in windows)
    ]
    return round(sum(idle) / len(idle), 3) if idle else None


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Train in a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        return report(run_dir, train(run_dir, options.steps))


if __name__ == "__main__":
    main("step", __doc__, measure, {"--steps": {"type": int, "default": 3, "help": "steps to measure (default: 3)"}})
