"""Where the seconds of a training step go, with the real engine on this machine.

    python -m bench.step [--steps 3]

Trains the bundled tiny model (16 questions x 8 episodes a step) and prints one line of JSON: seconds to the first step,
seconds a step by phase, seconds from the last episode's end to verl's start on the batch, rollouts a second while
rolling out, the share of rollout time in which vLLM had nothing to do (its engine process used less than 5 % of a core
over 0.2 s), and the peak of memory taken from the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from training.ports import free_port
from training.summary import PHASES, read_lines

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_SECONDS = 0.2
IDLE_SHARE_OF_A_CORE = 0.05


class Sampler(threading.Thread):
    """Samples memory of the machine, and the processor time of vLLM's engine with the time of the sample."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before = self.least = psutil.virtual_memory().available
        self.samples: list[tuple[float, float]] = []
        self.done = threading.Event()

    def run(self) -> None:
        engine: psutil.Process | None = None
        while not self.done.wait(SAMPLE_SECONDS):
            self.least = min(self.least, psutil.virtual_memory().available)
            engine = engine if engine is not None and engine.is_running() else _find_engine()
            if engine is not None:
                self._sample(engine)

    def _sample(self, engine: psutil.Process) -> None:
        try:
            used = engine.cpu_times()
        except psutil.NoSuchProcess:
            return
        self.samples.append((time.time(), used.user + used.system))

    def idle_share(self, windows: list[tuple[float, float]]) -> float | None:
        """Share of the samples inside the windows (Unix seconds) in which the engine did nothing; None without any."""
        idle = [
            (cpu - last_cpu) / (now - last) < IDLE_SHARE_OF_A_CORE
            for (last, last_cpu), (now, cpu) in zip(self.samples, self.samples[1:], strict=False)
            if any(begin <= last and now <= end for begin, end in windows)
        ]
        return round(sum(idle) / len(idle), 3) if idle else None


def _find_engine() -> psutil.Process | None:
    """vLLM's engine process below this one (Ray's processes are children of the run)."""
    for process in psutil.Process().children(recursive=True):
        try:
            if "EngineCore" in process.name() or "EngineCore" in " ".join(process.cmdline()):
                return process
        except psutil.Error:
            continue
    return None


def train(run_dir: Path, steps: int) -> Sampler:
    """Run the training command; its output goes to this program's standard error."""
    sampler = Sampler()
    sampler.start()
    command = [
        sys.executable,
        "train_sql_agent.py",
        "--ci",
        "--run-dir",
        str(run_dir),
        "trainer.val_before_train=false",
        f"trainer.total_training_steps={steps}",
        "trainer.test_freq=-1",
        "trainer.save_freq=-1",
    ]
    environment = {**os.environ, "AGL_SERVER_PORT": str(free_port("127.0.0.1"))}
    subprocess.run(command, cwd=ROOT, env=environment, stdout=sys.stderr, check=True)
    sampler.done.set()
    sampler.join()
    return sampler


def report(run_dir: Path, sampler: Sampler) -> dict[str, Any]:
    """What was measured, medians over steps."""
    summary = json.loads((run_dir / "summary.json").read_text())
    steps = [row["data"] for row in read_lines(run_dir / "metrics.jsonl") if "timing_s/step" in row["data"]]
    phases = {
        name: median(step.get(key, 0.0) for step in steps)
        for name, key in PHASES.items()
        if any(key in step for step in steps)
    }
    per_step = median(step["timing_s/step"] for step in steps)
    rollouts = summary["rollouts"]["finished"] / len(steps)
    return {
        "bench": "step",
        "machine": f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, {platform.machine()}",
        "steps": len(steps),
        "seconds_to_first_step": summary["seconds"]["to_first_step"],
        "seconds_per_step": round(per_step, 2),
        "seconds_by_phase": {name: round(value, 2) for name, value in phases.items()}
        | {"wait": round(per_step - sum(phases.values()), 2)},
        "end_to_update_s": round(median(step["timing_s/end_to_update"] for step in steps), 3),
        "rollouts_per_second": round(rollouts / phases["rollout"], 2),
        "vllm_idle_share_while_rolling_out": sampler.idle_share(_rollout_windows(run_dir, steps)),
        "peak_memory_gib": round((sampler.before - sampler.least) / 2**30, 2),
    }


def _rollout_windows(run_dir: Path, steps: list[dict[str, float]]) -> list[tuple[float, float]]:
    """When rollouts ran, laid out from the first step's start by the steps' own timings."""
    begin = json.loads((run_dir / "timeline.json").read_text())["first_step"]
    windows = []
    for step in steps:
        windows.append((begin, begin + step[PHASES["rollout"]]))
        begin += step["timing_s/step"]
    return windows


def main() -> None:
    """Run the bench and print its one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.step", description=__doc__)
    parser.add_argument("--steps", type=int, default=3, help="training steps to measure (default: 3)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        print(json.dumps(report(run_dir, train(run_dir, options.steps))))


if __name__ == "__main__":
    main()
