"""verifiers, Inspect and OpenEnv play an agent by their own programs, with the rewards of an
evaluation.

Installs each in an environment of its own: they need different versions of openai.
"""

from __future__ import annotations

import json
import os
import subprocess
import venv
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from common.settings import ROOT
from evaluation import evaluate
from tests.runs import free_port
from tests.serving import serving

pytestmark = [pytest.mark.system, pytest.mark.nightly]

TASKS = 4
# A client of OpenEnv: plays replies from standard input, then says nothing; prints what it earned
CLIENT = """
import json, sys, time
from openenv.core.generic_client import GenericEnvClient

def connected():
    for _ in range(100):
        try:
            return GenericEnvClient(base_url=sys.argv[1]).sync().connect()
        except ConnectionError:
            time.sleep(0.2)
    sys.exit("the server does not answer")

def failed(method, *arguments, **named):
    try:
        method(*arguments, **named)
    except RuntimeError as error:
        return str(error)

rewards = {}
env, other = connected(), connected()
for number, (task, replies) in enumerate(json.load(sys.stdin).items()):
    left = iter(replies)
    result = env.reset(task=task)
    other.reset(seed=number)  # leaves its episode before
    while not result.done:
        result = env.step(next(left, {"role": "assistant", "content": ""}))
    rewards[task] = result.reward
    assert env.state()["task"] == result.observation["result"]["task"] == task
after = failed(env.step, {"content": "more"})
unknown = failed(env.reset, task="no-such-task")
env.reset()
unscored = failed(env.step, {"tool_calls": [{"type": "function", "function": {"name": None}}]})
print(json.dumps([rewards, after, unknown, unscored]))
"""
REPLY = "Current diagnosis: lumbar disc herniation\nNo further examination is needed."


class Answering(BaseHTTPRequestHandler):
    """A model that says the same to everything."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": REPLY}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "same"}
        body = json.dumps({**reply, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def model() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}/v1"


@pytest.fixture
def wanted(model: str, tmp_path: Path) -> dict[str, float]:
    """The rewards of an evaluation, by task."""
    out = tmp_path / "evaluation"
    flags = ["--model", "same", "--base-url", model, "--out", str(out)]
    assert evaluate.main(["diagnosis", *flags]) == 0
    lines = (out / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    return {record["id"]: record["reward"] for record in map(json.loads, lines[:TASKS])}


def installed(folder: Path, extra: str) -> Path:
    """The programs of an environment with this extra."""
    venv.create(folder, with_pip=True)
    command = [folder / "bin/python", "-m", "pip", "install", "-q", "-e"]
    subprocess.run([*command, f"{ROOT / 'interop'}[{extra}]"], check=True)
    return folder / "bin"


def run(command: list[Any], model: str, folder: Path) -> None:
    keys = {"LOCAL_BASE_URL": model, "LOCAL_API_KEY": "none", "OPENAI_API_KEY": "none"}
    subprocess.run(
        [str(word) for word in command], cwd=folder, env={**os.environ, **keys}, check=True
    )


def test_verifiers_gives_the_rewards(model: str, wanted: dict[str, float], tmp_path: Path) -> None:
    programs = installed(tmp_path / "verifiers", "verifiers")
    where = ["--env.agent.runtime.type", "subprocess", "--client.base-url", model]
    key = ["--client.api-key-var", "OPENAI_API_KEY", "--no-push", "--no-rich"]
    tasks = ["--env.taskset.agent", "diagnosis", "--select.limit", TASKS]
    out = ["-o", tmp_path / "out"]
    run(
        [programs / "vf-eval", "medical-agents", "--model", "same", *where, *key, *tasks, *out],
        model,
        tmp_path,
    )
    [traces] = (tmp_path / "out").glob("*/traces.jsonl")
    found = {}
    for line in traces.read_text(encoding="utf-8").splitlines():
        [trace] = json.loads(line)["traces"]
        found[trace["task"]["data"]["id"]] = trace["rewards"]["reward"]["score"]
    assert found == wanted


def test_inspect_gives_the_rewards(model: str, wanted: dict[str, float], tmp_path: Path) -> None:
    programs = installed(tmp_path / "inspect", "inspect")
    chosen = ["--model", "openai-api/local/same", "--limit", TASKS]
    run(
        [programs / "inspect", "eval", "medical_agents/diagnosis", *chosen, "--log-dir", "logs"],
        model,
        tmp_path,
    )
    [log] = (tmp_path / "logs").glob("*.eval")
    said = subprocess.run(
        [programs / "inspect", "log", "dump", str(log)], check=True, capture_output=True, text=True
    )
    samples = json.loads(said.stdout)["samples"]
    assert {one["id"]: one["scores"]["own_reward"]["value"] for one in samples} == wanted
    assert all(one["messages"][-1]["content"] == REPLY for one in samples)


@pytest.fixture(scope="module")
def openenv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("openenv"), "openenv")


@pytest.mark.parametrize("agent", ["diagnosis", "sql"])
@pytest.mark.parametrize("flags", [["--gold"], ["--baseline", "silent"]])
def test_openenv_gives_the_rewards(
    agent: str, flags: list[str], openenv: Path, tmp_path: Path
) -> None:
    out = tmp_path / "evaluation"
    assert evaluate.main([agent, *flags, "--n", str(TASKS), "--out", str(out)]) == 0
    lines = (out / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    known = [json.loads(line) for line in lines]
    replies = {}
    for one in known:
        said = [message for message in one["transcript"] if message["role"] == "assistant"]
        replies[one["id"]] = said
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [openenv / "python", "-m", "medical_agents.for_openenv", agent, "--port", str(port)]
    with subprocess.Popen(command) as server:
        try:
            client = subprocess.run(
                [openenv / "python", "-c", CLIENT, url],
                input=json.dumps(replies),
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            subprocess.run([openenv / "openenv", "validate", "--url", url], check=True)
        finally:
            server.terminate()
    earned, after, unknown, unscored = json.loads(client.stdout)
    assert earned == {one["id"]: one["reward"] for one in known}
    assert "reset" in after
    assert "no-such-task" in unknown
    assert "endpoint_error" in unscored
