"""Workers that are forks draw numbers of their own; without a server each is a new Python."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from common.settings import ROOT
from training.cpu import fork_server
from training.cpu.fork_server import CLIENT, JOB, JOB_VARIABLE

# The engine is something quick to import that no Python has by itself.
SERVER = """
import os, sys
from training.cpu import fork_server
fork_server.import_engine = lambda parent: __import__(os.environ.get("ENGINE", "colorsys"))
fork_server.serve(sys.argv[1], int(sys.argv[2]))
"""
WORKER = """
import json, sys
told = {"arguments": sys.argv, "read": sys.stdin.read()}
told["engine"] = "colorsys" in sys.modules
if "numpy" in sys.modules:
    told["drawn"] = sys.modules["numpy"].random.random()
print(json.dumps(told), flush=True)
"""
pytestmark = pytest.mark.system


@pytest.fixture
def server(tmp_path):
    (tmp_path / "own").mkdir()
    address, parent = str(tmp_path / "own" / "socket"), str(os.getpid())
    process = subprocess.Popen([sys.executable, "-c", SERVER, address, parent], cwd=ROOT)
    while not (tmp_path / "own" / "socket").exists():
        assert process.poll() is None
        time.sleep(0.01)
    yield process
    process.kill()
    process.wait()


def ask(tmp_path: Path, *arguments: str, text: str = "") -> dict[str, object]:
    """Return what a worker says of itself, which its client may have left before."""
    worker, said = tmp_path / "worker.py", tmp_path / "said"
    worker.write_text(WORKER, encoding="utf-8")
    client = [sys.executable, "-I", "-S", CLIENT, tmp_path / "own" / "socket", worker]
    environment = {"PATH": os.environ["PATH"], JOB_VARIABLE: JOB}
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    with said.open("wb") as output:
        files = {"stdin": reader, "stdout": output, "stderr": output}
        process = subprocess.run([*client, *arguments], env=environment, cwd=tmp_path, **files)
    os.close(reader)
    assert process.returncode == 0, said.read_text()
    while not (found := said.read_text()).endswith("\n"):
        time.sleep(0.01)
    return dict(json.loads(found))


def test_forks_draw_other_random_numbers(tmp_path, request, monkeypatch):
    monkeypatch.setenv("ENGINE", "numpy.random")
    request.getfixturevalue("server")
    assert ask(tmp_path)["drawn"] != ask(tmp_path)["drawn"]


def test_a_run_leaves_no_folder_and_no_server(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    before = {*psutil.Process().children()}
    with fork_server.forking("cpu", "both") as command:
        (folder,) = tmp_path.iterdir()
        assert str(folder) in command
    assert [*tmp_path.iterdir()] == []
    assert {*psutil.Process().children()} == before


def test_without_a_server_the_worker_is_a_python_of_its_own(tmp_path):
    told = ask(tmp_path, "--one", text="typed")
    assert (told["engine"], told["arguments"]) == (False, [str(tmp_path / "worker.py"), "--one"])
    assert told["read"] == "typed"
