"""TensorBoard, SwanLab and W&B, each in a process of its own, which reads a run's records as they
grow.

    with tracked(["tensorboard", "wandb"], run_dir): ...                 # what a run does
    .venv/bin/python -m training.report.trackers wandb runs/NAME                # sends the records of a run that has ended

Training hands nothing to a tracker and waits for none: one that fails, hangs or has no network
costs a line on the screen, and END_SECONDS when the run ends. The records stay, so that the command
sends later what did not arrive. Metrics go under the names of `metrics.jsonl`; the first EPISODES
episodes of a step are a table. Exit codes: 1 failed (the tracker's own error stands above), 2 wrong
usage.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from threading import Event, Thread
from typing import Any, Protocol

from common.command import UsageError, new_parser, run_command
from common.jsonl import NewLines
from common.settings import ROOT

LOOK_SECONDS = 1.0
END_SECONDS = 15.0  # for the last lines, once the run has ended or was killed
EPISODES = 64
COLUMNS = (
    "mode",
    "task_type",
    "question",
    "answer",
    "reward",
    "terms",
    "cause",
    "stop_reason",
    "turns",
    "seconds",
)

Numbers = dict[str, float]
Rows = list[list[Any]]  # of COLUMNS


class Tracker(Protocol):
    """A tracker, made with the run's name, its config and the folder for its files on
    this machine.
    """

    def __init__(self, name: str, config: dict[str, Any], folder: Path) -> None: ...

    def log(self, step: int, numbers: Numbers, episodes: Rows) -> None: ...

    def finish(self) -> None: ...


class TensorBoard:
    """Writes into TENSORBOARD_DIR, in a folder of the run's name."""

    def __init__(self, name: str, config: dict[str, Any], folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        parent = os.environ.get("TENSORBOARD_DIR")
        self.writer = SummaryWriter(str(Path(parent) / name if parent else folder))

    def log(self, step: int, numbers: Numbers, episodes: Rows) -> None:
        for key, value in numbers.items():
            self.writer.add_scalar(key, value, step)
        if episodes:
            rows = [COLUMNS, ["---"] * len(COLUMNS), *episodes]
            cells = [
                [str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows
            ]
            self.writer.add_text(
                "episodes", "\n".join(f"| {' | '.join(row)} |" for row in cells), step
            )
        self.writer.flush()

    def finish(self) -> None:
        self.writer.close()


class SwanLab:
    """Reads SWANLAB_API_KEY itself; SWANLAB_MODE and SWANLAB_LOG_DIR as settings say."""

    def __init__(self, name: str, config: dict[str, Any], folder: Path) -> None:
        import swanlab

        self.swanlab = swanlab
        mode: Any = os.environ.get("SWANLAB_MODE", "online").replace("cloud", "online")
        logs = os.environ.get("SWANLAB_LOG_DIR") or str(folder)
        project = config["trainer"]["project_name"]
        swanlab.init(project=project, name=name, config=config, mode=mode, log_dir=logs)

    def log(self, step: int, numbers: Numbers, episodes: Rows) -> None:
        table = self.swanlab.echarts.Table()
        table.add(headers=list(COLUMNS), rows=episodes)
        self.swanlab.log({**numbers, **({"episodes": table} if episodes else {})}, step=step)

    def finish(self) -> None:
        self.swanlab.finish()


class WandB:
    """Reads its variables itself."""

    def __init__(self, name: str, config: dict[str, Any], folder: Path) -> None:
        import wandb

        self.wandb = wandb
        where = os.environ.get("WANDB_DIR") or folder
        self.run = wandb.init(
            project=config["trainer"]["project_name"], name=name, config=config, dir=where
        )

    def log(self, step: int, numbers: Numbers, episodes: Rows) -> None:
        table = self.wandb.Table(columns=list(COLUMNS), data=episodes, allow_mixed_types=True)
        self.run.log({**numbers, **({"episodes": table} if episodes else {})}, step=step)

    def finish(self) -> None:
        self.run.finish()


TRACKERS: dict[str, type[Tracker]] = {
    "tensorboard": TensorBoard,
    "swanlab": SwanLab,
    "wandb": WandB,
}


@contextmanager
def tracked(
    names: Sequence[str], run_dir: Path, end_seconds: float = END_SECONDS
) -> Iterator[None]:
    """Let these trackers follow the records of a run while the block runs."""
    processes = {_start(name, run_dir, end_seconds): name for name in names}
    tells = [Thread(target=_tell, args=(*one, run_dir), daemon=True) for one in processes.items()]
    for tell in tells:
        tell.start()
    try:
        yield
    finally:
        for process in processes:
            assert process.stdin
            # The tracker takes this for the end of the run, and this process's death as well
            process.stdin.close()
        for tell in tells:
            tell.join(end_seconds + LOOK_SECONDS)


def _start(name: str, run_dir: Path, end_seconds: float) -> subprocess.Popen[bytes]:
    """Start a tracker in a session of its own, which Ctrl-C does not reach."""
    command = [sys.executable, "-m", "training.report.trackers", name, str(run_dir.resolve())]
    command += ["--follow", str(end_seconds)]
    with _log(name, run_dir).open("ab") as log:
        return subprocess.Popen(
            command, cwd=ROOT, stdin=PIPE, stdout=log, stderr=log, start_new_session=True
        )


def _log(name: str, run_dir: Path) -> Path:
    path = run_dir / "trackers" / f"{name}.log"
    path.parent.mkdir(exist_ok=True)
    return path


def _tell(process: subprocess.Popen[bytes], name: str, run_dir: Path) -> None:
    if code := process.wait():
        again = f"`python -m training.report.trackers {name} {run_dir}` sends it again"
        print(
            f"{name} has not all of this run (exit code {code}, {_log(name, run_dir)}); {again}",
            flush=True,
        )


def follow(tracker: Tracker, run_dir: Path, ended: Event) -> None:
    """Hand a run's steps to a tracker: those there are, then new ones, until all are sent that were
    there when the run ended.
    """
    metrics, records = (
        NewLines(run_dir / name, old=True) for name in ("metrics.jsonl", "episodes.jsonl")
    )
    waiting: list[dict[str, Any]] = []
    last = False
    while not last:
        last = ended.wait(LOOK_SECONDS)
        steps = metrics.look()  # read before the episodes, which are written before their step
        waiting += records.look()
        for line in steps:
            episodes = [record for record in waiting if record["step"] <= line["step"]]
            waiting = [record for record in waiting if record["step"] > line["step"]]
            numbers = {key: value for key, value in line["data"].items() if value is not None}
            tracker.log(line["step"], numbers, [_cells(record) for record in episodes[:EPISODES]])


def _cells(record: dict[str, Any]) -> list[Any]:
    """Return one row of COLUMNS; run folders of earlier versions lack some."""
    shown = {**record, "terms": json.dumps(record.get("terms"))}
    return ["" if shown.get(name) is None else shown[name] for name in COLUMNS]


def _until_the_run_ends(ended: Event, end_seconds: float) -> None:
    sys.stdin.read()
    ended.set()
    time.sleep(end_seconds)
    os.killpg(0, signal.SIGKILL)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line of this module and return the exit code."""
    parser = new_parser(__doc__, prog="python -m training.report.trackers")
    parser.add_argument("tracker", choices=TRACKERS, metavar="TRACKER", help=", ".join(TRACKERS))
    parser.add_argument("run_dir", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument(
        "--follow",
        type=float,
        metavar="SECONDS",
        help="of a run that goes on; its end is the input's",
    )
    options = parser.parse_args(arguments)

    def body() -> None:
        import yaml

        if not (options.run_dir / "config.yaml").exists():
            raise UsageError(f"{options.run_dir} is no run: it has no config.yaml")
        ended = Event()
        if options.follow is not None:
            os.nice(10)
            Thread(target=_until_the_run_ends, args=(ended, options.follow), daemon=True).start()
        else:
            ended.set()
        config = yaml.safe_load((options.run_dir / "config.yaml").read_text(encoding="utf-8"))
        folder = options.run_dir / "trackers" / options.tracker
        folder.mkdir(parents=True, exist_ok=True)
        tracker = TRACKERS[options.tracker](options.run_dir.name, config, folder)
        follow(tracker, options.run_dir, ended)
        tracker.finish()

    return run_command("trackers", body)


if __name__ == "__main__":
    sys.exit(main())
