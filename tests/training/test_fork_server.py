"""A worker that is a fork runs like a Python of its own; without a server it is one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from common.settings import ROOT
from training.cpu import fork_server
from training.cpu.fork_server import CLIENT, JOB, JOB_VARIABLE
from training.setup.device import environment

# The engine is something quick to import that no Python has by itself.
SERVER = """
import os, sys
from training.cpu import fork_server
fork_server.import_engine = lambda parent: __import__(os.environ.get("ENGINE", "colorsys"))
fork_server.serve(sys.argv[1], int(sys.argv[2]))
"""
STARTER = f"""
import os, subprocess, sys, time
command = [sys.executable, "-c", {SERVER!r}, sys.argv[1], str(os.getpid())]
print(subprocess.Popen(command, stdout=subprocess.DEVNULL).pid)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
"""
pytestmark = pytest.mark.system
WORKER = """
import json, os, sys
told = {"arguments": sys.argv, "main": __name__, "path": sys.path[0], "folder": os.getcwd(), "read": sys.stdin.read()}
told |= {"engine": "colorsys" in sys.modules, "environment": dict(os.environ)}
told |= {"pid": os.getpid(), "parent": os.getppid(), "group": os.getpgid(0)}
if "numpy" in sys.modules:
    told["drawn"] = sys.modules["numpy"].random.random()
if "torch" in sys.modules:
    import torch
    told["sum"] = float((torch.ones(512, 512) @ torch.ones(512, 512)).sum())
    told["threads"] = torch.get_num_threads()
    told["tasks"] = len(os.listdir("/proc/self/task"))
print(json.dumps(told), flush=True)
if "--fail" in sys.argv:
    sys.exit(3)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "own").mkdir()
    address, parent = str(tmp_path / "own" / "socket"), str(os.getpid())
    process = subprocess.Popen([sys.executable, "-c", SERVER, address, parent], cwd=ROOT)
    while not (tmp_path / "own" / "socket").exists():
        assert process.poll() is None
        time.sleep(0.01)
    yield process
    process.kill()
    process.wait()


def ask(
    tmp_path: Path,
    *arguments: str,
    job: str = JOB,
    text: str = "",
    threads: int = 1,
    forks: bool = True,
) -> dict[str, object]:
    """What a worker says of itself; the client may have left before the fork, if there is one, that
    writes to its output.
    """
    worker, said = tmp_path / "worker.py", tmp_path / "said"
    worker.write_text(WORKER, encoding="utf-8")
    command = [
        sys.executable,
        "-I",
        "-S",
        str(CLIENT),
        str(tmp_path / "own" / "socket"),
        str(worker),
        *arguments,
    ]
    environment = {"PATH": os.environ["PATH"], JOB_VARIABLE: job, "OWN": "各位"}
    environment["OMP_NUM_THREADS"] = str(threads)
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    with said.open("wb") as output:
        process = subprocess.run(
            command,
            env=environment,
            cwd=tmp_path,
            stdin=reader,
            stdout=output,
            stderr=output,
            check=False,
        )
    os.close(reader)
    assert process.returncode == 0, said.read_text()
    while not (found := said.read_text()).endswith("\n"):
        assert forks, "there is no worker"
        time.sleep(0.01)
    return dict(json.loads(found))


def test_a_fork_has_the_engine_and_all_that_was_its_caller_s(
    tmp_path: Path, server: subprocess.Popen[bytes]
) -> None:
    told = ask(tmp_path, "--one", "two words", text="typed")
    assert (told["engine"], told["parent"], told["main"]) == (True, server.pid, "__main__")
    assert told["arguments"] == [str(tmp_path / "worker.py"), "--one", "two words"]
    assert (told["path"], told["folder"], told["read"]) == (str(tmp_path), str(tmp_path), "typed")
    environment = dict(told["environment"])  # type: ignore[call-overload]
    assert environment["OWN"] == "各位"
    assert "HOME" not in environment


def test_a_fork_computes_on_as_many_threads_as_it_is_given(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forks of a server whose threads had worked would wait for them without an end."""
    for name, value in (environment("cpu") | {"ENGINE": "torch"}).items():
        monkeypatch.setenv(name, value)
    server = request.getfixturevalue("server")
    alone, several = ask(tmp_path), ask(tmp_path, threads=3)
    assert (alone["threads"], alone["tasks"]) == (1, 1)
    assert several["threads"] == 3
    assert int(several["tasks"]) > 1  # type: ignore[call-overload]
    assert several["sum"] == 512**3
    assert psutil.Process(server.pid).num_threads() == 1


def test_forks_draw_other_random_numbers(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGINE", "numpy.random")
    request.getfixturevalue("server")
    assert ask(tmp_path)["drawn"] != ask(tmp_path)["drawn"]


def test_a_run_leaves_no_folder_and_no_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    before = {*psutil.Process().children()}
    plan: Any = SimpleNamespace(device="cpu", role="both")
    with fork_server.forking(plan) as command:
        (folder,) = tmp_path.iterdir()
        assert str(folder) in command
    assert [*tmp_path.iterdir()] == []
    assert {*psutil.Process().children()} == before


def test_forks_lead_process_groups_of_their_own_and_leave_nothing(
    tmp_path: Path, server: subprocess.Popen[bytes]
) -> None:
    """Ray kills a worker's whole group once the worker has ended."""
    one, failing, other = ask(tmp_path), ask(tmp_path, "--fail"), ask(tmp_path)
    pids = [told["pid"] for told in (one, failing, other)]
    assert [told["group"] for told in (one, failing, other)] == pids
    assert len({*pids, server.pid}) == 4
    while psutil.Process(server.pid).children():  # zombies, too
        time.sleep(0.01)


def test_another_job_s_worker_is_started_anew(
    tmp_path: Path, server: subprocess.Popen[bytes]
) -> None:
    """Ray's library has read the first job's number when it was imported."""
    told = ask(tmp_path, job="02000000")
    assert told["engine"] is False


def test_without_a_server_the_worker_is_a_python_of_its_own(tmp_path: Path) -> None:
    told = ask(tmp_path, "--one", text="typed")
    assert (told["engine"], told["arguments"]) == (False, [str(tmp_path / "worker.py"), "--one"])
    assert told["read"] == "typed"


def test_a_worker_is_a_python_of_its_own_if_the_server_ends_before_it_forks(
    tmp_path: Path,
) -> None:
    (tmp_path / "own").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "own" / "socket"))
        listener.listen()

        def read_and_end() -> None:
            connection = listener.accept()[0]
            with connection, connection.makefile("rb") as request:
                request.read()

        Thread(target=read_and_end, daemon=True).start()
        told = ask(tmp_path, "--one", text="typed", forks=False)
    assert told["arguments"] == [str(tmp_path / "worker.py"), "--one"]
    assert told["read"] == "typed"


def test_the_server_ends_with_its_command_and_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    started = subprocess.run(
        [sys.executable, "-c", STARTER, str(tmp_path / "own" / "socket")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    while psutil.pid_exists(int(started.stdout)):
        time.sleep(0.05)
    assert not (tmp_path / "own").exists()
