"""Real runs to which faults are done: their commands, their processes, and what is read of them.

`roles` is a run of three commands (store, runners, trainer) with doors between them,
and a partner. The others are one command. All have a judge, and go on with --resume auto, in the
same folder and on the same port.
"""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from bench.faults.disks import SmallDisk
from bench.faults.doors import Services
from bench.timeline import title_of
from tests.runs import ROOT, free_port, has_mark
from tools.sql.settings import DEFAULT_DATABASE
from training.setup.plan import ConfigError
from training.store.store_checks import check_external

TOKEN = "token-of-the-scene"
LIMIT_SECONDS = 540.0
LEFT_SECONDS = 30.0
PROGRESS = re.compile(r"^\[ *\d+ s\] (step|engine ready|starting) ")
SIZE = (
    "data.train_batch_size=4",
    "actor_rollout_ref.actor.ppo_mini_batch_size=4",
)  # x 8 episodes a step
KEEPS = (
    "trainer.save_freq=1",
    "--keep",
    "2",
    "trainer.total_epochs=100",
    "trainer.total_training_steps=1000",
)
LONG = ("--ci", "trainer.val_before_train=false", "trainer.test_freq=-1", *SIZE, *KEEPS)
COMMON = {"EPISODE_TIMEOUT": "60", "JUDGE_CHECK": "0", "CANARY_SHARE": "0"}
LINES = tempfile.NamedTemporaryFile("w", prefix="faults-", suffix=".log", delete=False, buffering=1)  # noqa: SIM115
# How a process of the engine calls itself.
TITLES = {
    "trainer's actor and proxy": r"ray::TrainingActor",
    "Ray worker of the trainer": r"ray::WorkerDict",
    "vLLM's server": r"ray::KeepingServer",
    "vLLM's engine": r"VLLM::EngineCore",
    "fork server": r"training\.fork_server",
    "raylet": r"^raylet",
}


class Command:
    """A command of a run, in a session of its own, and its lines with the Unix seconds of each."""

    def __init__(
        self, mark: str, *words: str, prefix: Sequence[str] = (), **variables: str
    ) -> None:
        self.mark, self.lines = mark, list[tuple[float, str]]()
        environment = {**os.environ, **COMMON, **variables, "RUN_MARK": mark}
        self.process: subprocess.Popen[str] = subprocess.Popen(
            [*prefix, sys.executable, *words],
            cwd=ROOT,
            env=environment,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append((time.time(), line.rstrip()))
            LINES.write(f"{time.strftime('%H:%M:%S')} {self.process.pid} {line}")

    @property
    def code(self) -> int | None:
        return self.process.poll()

    def alive(self) -> list[psutil.Process]:
        """Return all it started, wherever it hangs in the tree."""
        return [process for process in psutil.process_iter() if has_mark(process, self.mark)]

    def end(self) -> int:
        """End it as Ctrl-C does, and return the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(timeout=90)
        self.process.kill()
        return self.process.wait()


class Scene:
    """One run. `commands` by role, `doors` and servers by name."""

    agent = "sql"
    flags: tuple[str, ...] = ()
    disk: SmallDisk | None = None  # that may be filled
    parts = "all of one command: store, runners, proxy, verl, vLLM, Ray"

    def __init__(self, folder: Path) -> None:
        self.folder, self.run_dir = folder, folder / "run"
        folder.mkdir(parents=True, exist_ok=True)
        self.commands: dict[str, Command] = {}
        self.services, self.doors, self.port = Services(seed=1), dict[str, Any](), free_port()
        self.clock = folder / "clock"
        self.clock.write_bytes(struct.pack("d", 0.0))
        self.database = Path(shutil.copy(DEFAULT_DATABASE.removeprefix("sqlite:///"), folder))
        self.make()

    def make(self) -> None:
        self.doors["judge"] = self.services.judge()

    @property
    def variables(self) -> dict[str, str]:
        injected = {
            "PYTHONPATH": str(Path(__file__).with_name("injected")),
            "FAULT_CLOCK": str(self.clock),
        }
        judge = {
            "REWARD_MODEL_URL": self.doors["judge"].url + "/score",
            "LLM_CACHE": str(self.folder / "cache.sqlite"),
        }
        return {
            "AGL_SERVER_PORT": str(self.port),
            "DATABASE_URL": f"sqlite:///{self.database}",
            **injected,
            **judge,
        }

    @property
    def trainer(self) -> Command:
        return self.commands["trainer"]

    def start(self, role: str) -> None:
        self.commands[role] = Command(uuid.uuid4().hex, *self.trainer_command(), **self.variables)

    def trainer_command(self) -> list[str]:
        return [
            f"train_{self.agent}_agent.py",
            *LONG,
            "--run-dir",
            str(self.run_dir),
            "--resume",
            "auto",
            *self.flags,
        ]

    def ready(self) -> float:
        """Start or resume what does not run, and wait for a step. Return the seconds that took."""
        began = time.time()
        if not self.commands or self.trainer.code is not None:
            self.begin()
            self.until(lambda: any("] step " in line for _, line in self.trainer.lines))
        if self.trainer.code is not None:
            raise RuntimeError(
                "the run did not start:\n" + "\n".join(line for _, line in self.trainer.lines[-30:])
            )
        return time.time() - began

    def begin(self) -> None:
        self.start("trainer")

    def until(self, event: Callable[[], object], seconds: float = LIMIT_SECONDS) -> None:
        """Wait for an event, at most so long, while the trainer lives."""
        end = time.time() + seconds
        while time.time() < end and not event() and self.trainer.code is None:
            time.sleep(0.2)

    def find(self, name: str) -> list[psutil.Process]:
        """Return processes by the names that people use."""
        if name in self.commands:
            return [psutil.Process(self.commands[name].process.pid)]
        if name == "main process":
            return [psutil.Process(self.trainer.process.pid)]
        if name in ("runner", "keeper of the runners"):
            above = self.commands.get("runners", self.trainer)
            forks = [
                child
                for child in psutil.Process(above.process.pid).children()
                if "train_" in str(child.cmdline())
            ]
            return (
                forks
                if name != "runner"
                else [runner for keeper in forks for runner in keeper.children()]
            )
        title = TITLES[name]
        return [process for process in self.trainer.alive() if re.search(title, _title(process))]

    def steps(self) -> list[dict[str, Any]]:
        """Return verl's metrics, one dict a finished step."""
        return [
            row["data"] | {"step": row["step"]}
            for row in self.rows("metrics.jsonl")
            if "timing_s/step" in row["data"]
        ]

    def rows(self, name: str) -> list[dict[str, Any]]:
        path = self.run_dir / name
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]

    def said(self, since: float) -> tuple[str, float] | None:
        """Return the first line since then that is not a step's, and its seconds."""
        lines = [
            (at, role, line)
            for role, command in self.commands.items()
            for at, line in command.lines
        ]
        news = sorted(
            line
            for line in lines
            if line[0] >= since and line[2].strip() and not PROGRESS.match(line[2])
        )
        return (news[0][2], news[0][0] - since) if news else None

    def traceback(self, since: float) -> bool:
        return any(
            at >= since and "Traceback" in line
            for command in self.commands.values()
            for at, line in command.lines
        )

    def left(self) -> tuple[list[str], float]:
        """Return the titles of what lives 30 s after the trainer's end, and the seconds until
        nothing did.
        """
        began = time.time()
        while (alive := self.trainer.alive()) and time.time() - began < LEFT_SECONDS:
            time.sleep(0.3)
        return sorted(Counter(map(_title, alive))), time.time() - began

    def close(self) -> list[str]:
        """End everything as Ctrl-C does. Return the titles of what did not end as it should."""
        running = [role for role, command in self.commands.items() if command.code is None]
        codes = {role: self.commands[role].end() for role in reversed(running)}
        left = [
            f"{role} with exit code {code}" for role, code in codes.items() if code not in (0, 130)
        ]
        time.sleep(2)
        alive = [process for command in self.commands.values() for process in command.alive()]
        left += [_title(process) for process in alive]
        for process in alive:
            process.kill()
        if self.disk:
            self.disk.close()
        return left


class Roles(Scene):
    """Store, runners and trainer as three commands, each reaching the others through a door."""

    agent = "consultation"
    flags: tuple[str, ...] = ("--patient", "llm", "--n-runners", "2")
    parts = "store, runners, trainer as three commands: with proxy, verl, vLLM, Ray"

    def make(self) -> None:
        super().make()
        self.proxy_port = free_port()
        self.doors["partner"] = self.services.partner()
        store, proxy = (f"http://127.0.0.1:{port}" for port in (self.port, self.proxy_port))
        targets = {"runners to store": store, "trainer to store": store, "runners to proxy": proxy}
        self.doors |= {name: self.services.door(target) for name, target in targets.items()}

    def begin(self) -> None:
        for role in ("store", "runners", "trainer"):
            if role not in self.commands or self.commands[role].code is not None:
                self.start(role)
            if role == "store":
                self.until_served()

    def until_served(self) -> None:
        end = time.time() + LIMIT_SECONDS
        while True:
            try:
                return check_external(f"http://127.0.0.1:{self.port}", TOKEN)
            except ConfigError:
                if time.time() > end or self.commands["store"].code is not None:
                    raise
                time.sleep(0.5)

    def start(self, role: str) -> None:
        told = self.variables | {
            "AGL_MANAGED_STORE": "0",
            "AGL_TOKEN": TOKEN,
            "PATIENT_MODEL": "openai/patient",
            "PATIENT_API_KEY": "none",
        }
        told |= {
            "PATIENT_BASE_URL": self.doors["partner"].url + "/v1",
            "LLM_PROXY_PORT": str(self.proxy_port),
        }
        told |= {"LLM_PROXY_PUBLIC_HOST": self.doors["runners to proxy"].url}
        told |= {
            "AGL_CURRENT_ROLE": {"runners": "runner", "trainer": "algorithm"}.get(role, "both")
        }
        prefix = self.disk.enter if self.disk and role == "store" else ()
        self.commands[role] = Command(
            uuid.uuid4().hex, *getattr(self, f"{role}_command")(), prefix=prefix, **told
        )

    def store_command(self) -> list[str]:
        return [
            "-m",
            "training.store",
            "serve",
            "--port",
            str(self.port),
        ]

    def runners_command(self) -> list[str]:
        folder = ["--run-dir", str(self.folder / "runners")]
        return [
            *super().trainer_command(),
            *folder,
            "--external-store-address",
            self.doors["runners to store"].url,
        ]

    def trainer_command(self) -> list[str]:
        return [
            *super().trainer_command(),
            "--external-store-address",
            self.doors["trainer to store"].url,
        ]


class Path_(Roles):
    """The same with a trainer that trains nothing, before a policy that is a stand-in."""

    parts = (
        "store, runners, rollout manager with proxy, collector, watch and books; no verl, Ray, vLLM"
    )

    def make(self) -> None:
        super().make()
        self.doors["policy"] = self.services.policy(self.agent)
        self.disk = SmallDisk(self.folder / "store", 2**28)

    def trainer_command(self) -> list[str]:
        policy = self.doors["policy"].url.removeprefix("http://")
        places = [
            self.doors["trainer to store"].url,
            policy,
            str(self.proxy_port),
            self.doors["runners to proxy"].url,
        ]
        return ["-m", "bench.faults.standin", self.agent, str(self.run_dir), *places]


class Queries(Path_):
    """The same with the agent that needs a database."""

    agent = "sql"
    flags = ("--n-runners", "2")


class Disk(Scene):
    """A run whose folder is on a disk of its own."""

    parts = "all of one command, with the run's folder on a disk of 1 GiB"

    def make(self) -> None:
        super().make()
        self.disk = SmallDisk(self.run_dir, 2**30)
        self.told_dir, self.run_dir = self.run_dir, self.disk.seen

    def start(self, role: str) -> None:
        assert self.disk
        words = [
            str(self.told_dir) if word == str(self.run_dir) else word
            for word in self.trainer_command()
        ]
        self.commands[role] = Command(
            uuid.uuid4().hex, *words, prefix=self.disk.enter, **self.variables
        )


class Sandbox(Scene):
    """A run of the agent whose programs run in bubblewrap, found on a path of its own."""

    agent = "code"
    parts = "all of one command, and the sandbox"

    @property
    def variables(self) -> dict[str, str]:
        return {**super().variables, "PATH": f"{self.folder}:{os.environ['PATH']}"}


SCENES = {
    "one": Scene,
    "path": Path_,
    "queries": Queries,
    "roles": Roles,
    "disk": Disk,
    "sandbox": Sandbox,
}


def _title(process: psutil.Process) -> str:
    try:
        return title_of(process)
    except psutil.NoSuchProcess:
        return "gone"
