"""What can be served, and how a server that cannot start is told."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common.settings import ROOT
from tests.messages import missing
from training import serve
from training.engine.checkpoints import MARK

TINY = ROOT / "sql_agent" / "tiny_model"


@pytest.fixture(autouse=True)
def under_either_lock(monkeypatch):
    """The GPU lock refuses the CPU, on which these tests serve."""
    monkeypatch.setattr("training.setup.device.built_for", lambda: "cpu")


@pytest.fixture
def run_folder(tmp_path):
    """A run with two checkpoints, the first of which is complete."""
    for step in (1, 2):
        shutil.copytree(TINY, tmp_path / f"checkpoints/global_step_{step}/actor/huggingface")
    (tmp_path / "checkpoints" / MARK).write_text("1")
    return tmp_path


@pytest.mark.parametrize("flags", [("--port", "65536"), ("--n-gpus", "0")])
def test_numbers_that_no_server_takes_are_refused(flags, capsys):
    with pytest.raises(SystemExit) as ended:
        serve.main([str(TINY), *flags])
    assert ended.value.code == 2
    assert not missing(capsys.readouterr().err, *flags)


def test_folders_runs_and_checkpoints_can_be_served(run_folder):
    steps = [run_folder / "checkpoints" / f"global_step_{step}" for step in (1, 2)]
    assert serve.servable(str(TINY)) == str(TINY)
    assert serve.servable(str(run_folder)) == str(steps[0] / "actor" / "huggingface")
    assert serve.servable(str(steps[1])) == str(steps[1] / "actor" / "huggingface")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_server_listens_on_loopback_behind_its_door(device):
    """vLLM's other routes load any folder; a file of the model's may set what clients leave out."""
    words = " ".join(serve.command("m", device, 1234, n_gpus=2))
    assert "--host 127.0.0.1 --port 1234" in words
    assert "--middleware training.proxy.doors.ServedDoor" in words
    assert "--generation-config vllm" in words


def test_a_model_that_knows_no_tools_is_served_with_tools_in_words(tmp_path, monkeypatch):
    folder = Path(shutil.copytree(TINY, tmp_path / "model"))
    started: list[list[str]] = []

    def popen(words: list[str], **_: object) -> None:
        started.append(words)
        raise ZeroDivisionError

    monkeypatch.setattr(serve.subprocess, "Popen", popen)
    plain = "{% for message in messages %}{{ message.content }}{% endfor %}"
    for template in (plain, (TINY / "chat_template.jinja").read_text()):
        (folder / "chat_template.jinja").write_text(template)
        with pytest.raises(ZeroDivisionError), serve.serve(str(folder), tmp_path / "vllm.log"):
            pass
    first, second = started
    written = Path(first[first.index("--chat-template") + 1])
    assert "<tool_call>" in written.read_text()
    assert "--chat-template" not in second


def test_a_server_that_ends_at_once_is_told_with_its_last_words(tmp_path, monkeypatch):
    said = "echo 'SomeError: too little'; echo noise; exit 3"
    monkeypatch.setattr(serve, "command", lambda *_: ["bash", "-c", said])
    log = tmp_path / "logs" / "log"
    with pytest.raises(serve.ServeError) as error, serve.serve(str(TINY), log):
        pass
    assert not missing(str(error.value), "code 3", log, "SomeError: too little")
    assert "noise" not in str(error.value)


SERVING = """
import sys
from training import serve
server = "trap 'echo ended in order; exit' TERM; echo ready; sleep 60 & wait"
serve.command = lambda *_: ["bash", "-c", server]
sys.exit(serve.main(sys.argv[1:]))
"""


@pytest.mark.system
def test_a_stop_signal_ends_the_server_in_order(tmp_path):
    """Killed instead, its processes would keep the memory for a while."""
    log = tmp_path / "log"
    words = [sys.executable, "-c", SERVING, str(TINY), "--device", "cpu", "--log", str(log)]
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE) as program:
        while program.poll() is None and (not log.exists() or b"ready" not in log.read_bytes()):
            time.sleep(0.05)
        program.terminate()
        program.communicate()
    assert program.returncode == 130
    assert log.read_bytes().endswith(b"ended in order\n")
