"""A whole training step of agent-lightning 0.3.0, by its own verl glue, over ours, in one run.

    .venv/bin/python -m bench.agl_step --peer PEER/bin/python      # one line of JSON last

Both train the bundled tiny model on the SQL agent's questions, with the same prompts, tool, judge,
sizes, learning rate and temperature. The peer has an environment of its own, since its glue fits
verl <= 0.6 (requirements/peer.txt). It runs once for every number of runner processes asked for,
and the fastest counts. `vs_agl_step` is the peer's median seconds a step over ours, by verl's own
`timing_s/step` on both sides. The first step of a run is not counted.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from bench import step
from bench._harness import main
from bench.agl_side.peer_settings import STEPS, Settings
from common.command import Failure, UsageError, run_command
from common.settings import ROOT, load_settings
from episodes import registry
from episodes.agent import bundled_model
from training.report.summary import read_lines
from training.setup.device import environment
from training.setup.ports import free_port
from training.setup.presets import ACTOR, ROLLOUT, choose

LAST_LINES = 20
LOOK_EVERY_SECONDS = 1.0
DAEMON_POLL_SECONDS = 5.0  # fixed in agentlightning.verl.daemon
STOP_SECONDS = 15.0
PROGRAM = ("-m", "bench.agl_side.whole_step")
HOW = (
    "make the environment of agent-lightning's glue, which needs another verl than this one:\n"
    "  python3.11 -m venv PEER && PEER/bin/pip install --no-deps -r requirements/peer.txt\n"
    "  PEER/bin/python requirements/vllm_metadata.py\n"
    "and give its interpreter: --peer PEER/bin/python"
)
# Variables of our plug-ins. Ray counts no logical GPU if the last is set, even to nothing
OURS_ALONE = (
    "VERL_PLATFORM",
    "TRANSFER_QUEUE_ENABLE",
    "VLLM_ENABLE_V1_MULTIPROCESSING",
    "CUDA_VISIBLE_DEVICES",
    "TORCH_FORCE_WEIGHTS_ONLY_LOAD",  # verl 0.6.1 sends its batches as pickled TensorDicts
)
NEEDED = """
from importlib.metadata import version
assert version("agentlightning") == "0.3.0" and version("verl").startswith("0.6."), "other versions"
version("vllm")
"""


def settings_of(folder: Path, steps: int, runners: int) -> Settings:
    """Return the peer's settings: the sizes of `train_sql_agent.py --ci` on this machine's CPU."""
    agent = registry.get("sql")
    preset = choose(agent, "ci", "cpu", 1)
    sizes = agent.sizes("cpu")
    settings = load_settings()
    return Settings(
        folder=str(folder),
        model=bundled_model(agent),
        port=free_port("127.0.0.1"),
        steps=steps,
        questions=preset["data.train_batch_size"],
        episodes=preset[f"{ROLLOUT}.n"],
        prompt_tokens=sizes.prompt,
        response_tokens=sizes.response,
        reply_tokens=settings.max_tokens or sizes.reply,
        max_turns=settings.max_turns,
        temperature=settings.temperature,
        learning_rate=preset[f"{ACTOR}.optim.lr"],
        clip_ratio_high=preset[f"{ACTOR}.clip_ratio_high"],
        runners=runners,
    )


def peer_environment() -> dict[str, str]:
    """Return the variables of the peer's processes: ours for the CPU, without our plug-ins."""
    variables = {**os.environ, **environment("cpu")}
    for name in OURS_ALONE:
        variables.pop(name, None)
    return {
        **variables,
        "PYTHONPATH": str(ROOT),
        "VERL_USE_EXTERNAL_MODULES": "bench.agl_side.verl_on_cpu",
        "VLLM_CPU_OMP_THREADS_BIND": "all",  # no binding: vLLM 0.11 does not know "nobind"
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "HF_HUB_OFFLINE": "1",
    }


def check_peer(python: Path | None) -> Path:
    """Return the peer's interpreter. Raises UsageError: not given, or it cannot import the peer."""
    if python is None:
        raise UsageError(f"--peer is missing; {HOW}")
    if not python.is_file():
        raise UsageError(f"--peer {python}: there is no such file; {HOW}")
    command = [str(python), "-c", NEEDED]
    done = subprocess.run(command, capture_output=True, text=True, env=peer_environment())
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise UsageError(f"--peer {python} cannot run the peer ({said[0]}); {HOW}")
    return python


def train_peer(python: Path, settings: Settings, patience: float) -> list[dict[str, float]]:
    """Train with the peer until its last step is written, and return its steps.

    Raises Failure: the peer ended before, or wrote no step for `patience` seconds.
    """
    folder = Path(settings.folder)
    folder.mkdir(parents=True)
    command = [str(python), *PROGRAM, str(settings.write())]
    log = folder / "peer.log"
    with log.open("wb") as output, running(command, output) as process:
        written = 0
        since = time.monotonic()
        while len(steps := read_lines(folder / STEPS)) < settings.steps:
            if len(steps) > written:
                written = len(steps)
                since = time.monotonic()
            if process.poll() is not None and len(read_lines(folder / STEPS)) < settings.steps:
                raise Failure(f"the peer ended with {process.returncode} {after(written, log)}")
            if time.monotonic() - since > patience:
                raise Failure(f"the peer wrote no step for {patience:g} s {after(written, log)}")
            time.sleep(LOOK_EVERY_SECONDS)
    return steps


def after(written: int, log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
    return "\n".join([f"after {written} steps; its last lines:", *lines])


@contextmanager
def running(command: list[str], output: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command while the block runs. Afterwards end its whole session: Ray's processes would
    outlive it.
    """
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=peer_environment(),
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        family = [one for one in psutil.process_iter() if session_of(one) == process.pid]
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.terminate()
        for member in psutil.wait_procs(family, STOP_SECONDS)[1]:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        process.wait()


def session_of(process: psutil.Process) -> int | None:
    """Return the session of a process, or None if the process has ended."""
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return None


def counted(steps: list[dict[str, float]]) -> list[float]:
    """Return the seconds of the steps that count: the first only warms up."""
    return [row["seconds"] for row in steps[1:]]


def train_ours(run_dir: Path, steps: int) -> list[dict[str, float]]:
    """Train with `train_sql_agent.py --ci`, and return its steps in the peer's form."""
    step.train(run_dir, steps)
    return [{"seconds": row["timing_s/step"]} for row in step.metrics(run_dir)]


def report(
    ours: list[dict[str, float]], peer: dict[int, list[dict[str, float]]], settings: Settings
) -> dict[str, Any]:
    """Return the figures. `peer` has its steps by the number of runner processes."""
    medians = {runners: median(counted(steps)) for runners, steps in peer.items()}
    fastest = min(medians, key=lambda runners: medians[runners])
    phases = {
        name: round(median(row[name] for row in peer[fastest][1:]), 2)
        for name in peer[fastest][0]
        if name not in ("step", "seconds")
    }
    own = median(counted(ours))
    configuration = {**asdict(settings), "runners": fastest, "daemon_poll_s": DAEMON_POLL_SECONDS}
    for name in ("folder", "model", "port"):
        del configuration[name]
    return {
        "vs_agl_step": round(medians[fastest] / own, 2),
        "seconds_per_step": round(own, 2),
        "agl_seconds_per_step": round(medians[fastest], 2),
        "agl_seconds_by_runners": {runners: round(value, 2) for runners, value in medians.items()},
        "agl_step": phases,
        "configuration": configuration,
    }


def measure(options: argparse.Namespace) -> dict[str, Any]:
    if options.steps < 1:
        raise UsageError(f"--steps {options.steps}: expected 1 or more")
    if min(options.runners) < 1:
        raise UsageError(f"--runners {min(options.runners)}: expected 1 or more")
    python = check_peer(options.peer)
    steps = options.steps + 1
    with tempfile.TemporaryDirectory() as folder:
        ours = train_ours(Path(folder) / "run", steps)
        peer = {}
        for runners in options.runners:
            settings = settings_of(Path(folder) / f"peer{runners}", steps, runners)
            peer[runners] = train_peer(python, settings, options.patience)
        return report(ours, peer, settings)


FLAGS: dict[str, dict[str, Any]] = {
    "--peer": {
        "type": Path,
        "metavar": "PYTHON",
        "help": "the interpreter of the peer's environment (requirements/peer.txt)",
    },
    "--steps": {"type": int, "default": 3, "help": "steps to measure on each side (default: 3)"},
    "--runners": {
        "type": int,
        "nargs": "+",
        "default": [2, 4, 8],
        "help": "numbers of the peer's runner processes to try (default: 2 4 8)",
    },
    "--patience": {
        "type": float,
        "default": 600.0,
        "metavar": "SECONDS",
        "help": "stop a peer that ends no step for so long (default: 600)",
    },
}

if __name__ == "__main__":
    sys.exit(run_command("bench.agl_step", lambda: main("agl_step", __doc__, measure, FLAGS)))
