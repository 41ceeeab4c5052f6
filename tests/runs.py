"""Real runs of the real engine on bundled tiny models; each takes about a minute, so all tests
share what they can.

The fixtures are known to every test through `tests/conftest.py`.
"""

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).parents[1]
TRAIN = "train_sql_agent.py"
LIMIT_SECONDS = 420
# A company's network; nothing listens there, so a client that asks it fails.
PROXIES = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")


@dataclass
class Run:
    """A run of a training command in a process group; a mark of its own finds its children."""

    run_dir: Path
    process: subprocess.Popen[str]
    mark: str
    printed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # A pipe that nobody reads would stop a run that prints much
        assert self.process.stdout is not None
        self._reader = Thread(target=self.printed.extend, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return "".join(self.printed)

    def wait(self) -> int:
        """Wait until it has ended, and every process of its own that could still print."""
        code = self.process.wait(timeout=LIMIT_SECONDS)
        self._reader.join(LIMIT_SECONDS)
        return code

    def wait_for(self, event: Callable[["Run"], object]) -> None:
        """Wait until `event(run)` is true, as long as the run goes on."""
        end = time.time() + LIMIT_SECONDS
        while not event(self):
            assert self.process.poll() is None, self.output
            assert time.time() < end, f"not seen after {LIMIT_SECONDS} s"
            time.sleep(0.2)

    def text(self, name: str) -> str:
        """A file of the run's folder, "" where there is none yet."""
        path = self.run_dir / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The whole lines of one of the run's JSONL files."""
        return [json.loads(line) for line in self.text(name).split("\n")[:-1]]

    def steps(self) -> list[dict[str, Any]]:
        """verl's metrics, one dict a finished step."""
        found = [line["data"] for line in self.lines("metrics.jsonl")]
        return [data for data in found if "timing_s/step" in data]

    def summary(self) -> dict[str, Any]:
        return dict(json.loads((self.run_dir / "summary.json").read_text()))

    def alive(self) -> list[psutil.Process]:
        """Return the processes that this run started, wherever they hang in the process tree."""
        return [process for process in psutil.process_iter() if has_mark(process, self.mark)]


def has_mark(process: psutil.Process, mark: str) -> bool:
    """Whether a living process inherited RUN_MARK=mark."""
    try:
        marked = process.environ().get("RUN_MARK") == mark
        return marked and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def listens(process: psutil.Process) -> set[str]:
    """The addresses that a process listens on for TCP."""
    try:
        found = process.net_connections("tcp")
    except psutil.NoSuchProcess:
        return set()
    return {connection.laddr.ip for connection in found if connection.status == psutil.CONN_LISTEN}


def free_port() -> int:
    from training.setup.ports import free_port as port

    return port("127.0.0.1")


@pytest.fixture(scope="session")
def start(tmp_path_factory):
    """Start a run: `start("--ci-fast", AGL_...="...")`; whatever still lives at the end is killed.

    `program` is the training command of another agent; `within` comes before the command and runs
    it.
    """
    runs: list[Run] = []

    def start_run(
        *arguments: str,
        program: str = TRAIN,
        run_dir: Path | None = None,
        within: Sequence[str] = (),
        **environment: str,
    ) -> Run:
        folder = run_dir or tmp_path_factory.mktemp("run") / "run"
        mark = uuid.uuid4().hex
        variables = {"AGL_SERVER_PORT": str(free_port()), **environment, "RUN_MARK": mark}
        command = [*within, sys.executable, program, "--run-dir", str(folder), *arguments]
        said: Any = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        env = {**os.environ, **variables}
        process = subprocess.Popen(command, cwd=ROOT, env=env, start_new_session=True, **said)
        runs.append(Run(folder, process, mark))
        return runs[-1]

    yield start_run
    for run in runs:
        for process in run.alive():
            process.kill()


@pytest.fixture(scope="session")
def fast_run(start):
    """`train_NAME_agent.py --ci-fast`, run to its end once for all tests that look at it."""

    @cache
    def run_to_its_end(name: str) -> Run:
        run = start("--ci-fast", program=f"train_{name}_agent.py", **PROXIES)
        assert run.wait() == 0, run.output
        return run

    return run_to_its_end
