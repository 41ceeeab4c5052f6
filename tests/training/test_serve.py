"""What can be served, and how a server that cannot start is told.

The server itself: tests/engine/test_evaluate.py.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from common.settings import ROOT, Settings
from episodes import registry
from episodes.agent import Service
from training import serve
from training.engine.checkpoints import MARK
from training.setup.plan import ConfigError
from training.setup.ports import require_free

TINY = ROOT / "sql_agent" / "tiny_model"


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run with two checkpoints, the first of which is complete."""
    for step in (1, 2):
        shutil.copytree(
            TINY, tmp_path / "checkpoints" / f"global_step_{step}" / "actor" / "huggingface"
        )
    (tmp_path / "checkpoints" / MARK).write_text("1")
    return tmp_path


def test_folders_runs_and_checkpoints_can_be_served(run_folder: Path) -> None:
    steps = [run_folder / "checkpoints" / f"global_step_{step}" for step in (1, 2)]
    assert serve.servable(str(TINY)) == str(TINY)
    assert serve.servable(str(run_folder)) == str(steps[0] / "actor" / "huggingface")
    assert serve.servable(str(steps[1])) == str(steps[1] / "actor" / "huggingface")


def test_a_mistyped_run_is_refused_before_the_hub_is_asked() -> None:
    with pytest.raises(ConfigError, match="no model folder at runs/nme"):
        serve.servable("runs/nme")


def test_the_last_words_are_those_of_this_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("RuntimeError: an earlier server's words\n", encoding="utf-8")
    ended = subprocess.Popen(["false"])
    ended.wait()
    with log.open("a", encoding="utf-8") as file:
        file.write("ValueError: its own words\n")
    said = str(serve._failed(ended, log, begins=40))
    assert "its own words" in said
    assert "earlier" not in said


def test_what_cannot_be_served_is_told_before_a_server_starts(
    run_folder: Path, tmp_path: Path
) -> None:
    (run_folder / "checkpoints" / MARK).unlink()
    with pytest.raises(ConfigError, match="no complete checkpoint"):
        serve.servable(str(run_folder))
    (tmp_path / "empty").mkdir()
    for model in (str(tmp_path / "empty"), "./nowhere", "name"):
        with pytest.raises(ConfigError, match="model folder"):
            serve.servable(model)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_server_listens_on_loopback_and_parses_tool_calls(device: str) -> None:
    words = " ".join(serve.command("m", device, 1234, n_gpus=2))
    assert "--host 127.0.0.1 --port 1234" in words
    assert "--tool-call-parser hermes" in words
    assert "--tensor-parallel-size 2" in words
    assert ("--enforce-eager" in words) == (device == "cpu")
    assert "tool" not in " ".join(serve.command("m", device, 1234, tools=False))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_served_model_answers_completions_sampled_as_clients_ask(device: str) -> None:
    """vLLM's other routes load adapters from any folder, and a file in the model's own folder would
    set what a client leaves out.
    """
    words = " ".join(serve.command("m", device, 1234))
    assert "--middleware training.proxy.doors.ServedDoor" in words
    assert "--generation-config vllm" in words


@pytest.mark.parametrize(("gpus", "share", "parallel"), [(None, "0.25", "1"), ("2,3", "0.9", "2")])
def test_a_partner_has_gpus_of_its_own_or_a_share_of_the_policys(
    gpus: str | None, share: str, parallel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, told = registry.get("sql"), dict[str, Any]()
    monkeypatch.setattr(
        agent.flags, "services", lambda *_: [Service("partner_url", str(TINY), gpus)], raising=False
    )
    monkeypatch.setattr(serve, "choose_device", lambda _: "cuda")
    monkeypatch.setattr(
        serve.subprocess,
        "Popen",
        lambda words, env, **_: told.update(words=words, env=env) or 1 / 0,
    )
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with pytest.raises(ZeroDivisionError), serve.serve_environment(agent, Settings(), {}, tmp_path):
        pass
    words = " ".join(told["words"])
    assert f"--gpu-memory-utilization {share}" in words
    assert f"--tensor-parallel-size {parallel}" in words
    assert told["env"].get("CUDA_VISIBLE_DEVICES") == gpus


def test_a_model_that_knows_no_tools_is_served_with_tools_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(TINY, tmp_path / "model"))
    started: list[list[str]] = []
    monkeypatch.setattr(
        serve.subprocess, "Popen", lambda words, **_: started.append(words) or 1 / 0
    )
    for template in (
        "{% for message in messages %}{{ message.content }}{% endfor %}",
        (TINY / "chat_template.jinja").read_text(),
    ):
        (folder / "chat_template.jinja").write_text(template)
        with pytest.raises(ZeroDivisionError), serve.serve(str(folder), tmp_path / "vllm.log"):
            pass
    first, second = started
    written = Path(first[first.index("--chat-template") + 1])
    assert "<tool_call>" in written.read_text()
    assert "--chat-template" not in second


def test_another_server_at_the_port_is_not_taken_for_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would answer when it is asked whether the model is there, and then be evaluated."""
    monkeypatch.setattr(serve.subprocess, "Popen", lambda *_, **__: pytest.fail("it was started"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with (
            pytest.raises(ConfigError, match=rf"cannot listen on 127\.0\.0\.1:{port} .* --port"),
            serve.serve(str(TINY), tmp_path / "log", port=port),
        ):
            pass


def test_a_port_that_was_left_a_moment_ago_is_free() -> None:
    """The kernel remembers closed connections for a minute, in which the next run may start."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            listening.accept()[0].close()
            assert client.recv(1) == b""
    require_free("127.0.0.1", port, "--port")


def test_a_server_that_ends_at_once_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        serve,
        "command",
        lambda *_: ["bash", "-c", "echo 'SomeError: too little'; echo noise; exit 3"],
    )
    log = tmp_path / "logs" / "log"
    with (
        pytest.raises(serve.ServeError, match="ended with code 3") as error,
        serve.serve(str(TINY), log),
    ):
        pass
    assert str(error.value).endswith(f"({log}):\nSomeError: too little")


MORTAL = """
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"data": [{"max_model_len": 64}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).handle_request()
sys.exit("EngineDeadError: gone")
"""


SERVING = """
import sys
from training import serve
server = "trap 'echo ended in order; exit' TERM; echo ready; sleep 60 & wait"
serve.command = lambda *_: ["bash", "-c", server]
sys.exit(serve.main(sys.argv[1:]))
"""


def test_a_stop_signal_ends_the_server_in_order(tmp_path: Path) -> None:
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


def test_a_failure_after_the_servers_death_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def use() -> None:
        with serve.serve(str(TINY), tmp_path / "log") as server:
            assert server.max_model_len == 64
            server.process.wait(10)
            raise RuntimeError("connection refused")

    monkeypatch.setattr(
        serve, "command", lambda *words: [sys.executable, "-c", MORTAL, str(words[2])]
    )
    with pytest.raises(serve.ServeError, match="EngineDeadError: gone"):
        use()


def test_a_model_that_cannot_be_served_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert serve.main(["name-of-nothing", "--log", str(tmp_path / "log")]) == 2
    assert capsys.readouterr().err.startswith("serve: no model folder")
