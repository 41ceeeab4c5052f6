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
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from common.settings import ROOT
from episodes import registry
from evaluation import evaluate
from tests.runs import free_port
from tests.serving import JsonHandler, serving

pytestmark = [pytest.mark.system, pytest.mark.nightly]

TASKS = 4
# A client of OpenEnv: plays replies from standard input, then says nothing; prints what it earned
CLIENT = """
import json, sys, time, urllib.error, urllib.request
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

def posted(path, body):
    headers = {"Content-Type": "application/json"}
    data = json.dumps(body).encode()
    try:
        urllib.request.urlopen(urllib.request.Request(sys.argv[1] + path, data, headers))
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"

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
refused = [
    failed(env.reset, seed="abc"),
    failed(env.reset, seed=1.5),
    failed(env.reset, task=5),
    posted("/step", {"action": {"content": "x"}}),
    posted("/reset", {"task": "no-such-task"}),
]
print(json.dumps([rewards, after, unknown, unscored, refused]))
"""
Replies = dict[str, list[dict[str, Any]]]  # by the first words of the patient


class Answering(JsonHandler):
    """The models `gold`, which gives the replies of known episodes, and `silent`."""

    replies: Replies

    def do_POST(self) -> None:
        body = self.asked()
        said = [one for one in body["messages"] if one["role"] == "assistant"]
        message = {"role": "assistant", "content": ""}
        if body["model"] == "gold":
            message = self.replies[body["messages"][1]["content"]][len(said)]
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {"id": "1", "object": "chat.completion", "created": 1, "model": body["model"]}
        self.answer({**reply, "choices": [choice], "usage": usage})


def evaluated(out: Path, *flags: str) -> list[dict[str, Any]]:
    """The episodes of an evaluation."""
    assert evaluate.main([*flags, "--out", str(out)]) == 0
    lines = (out / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def said_by_policy(episode: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for message in episode["transcript"] if message["role"] == "assistant"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few cases, in a folder whose name has a blank."""
    path = tmp_path_factory.mktemp("some cases") / "cases.jsonl"
    agent = registry.get("diagnosis")
    rows = map(json.dumps, agent.rows(agent.splits["test"])[:TASKS])
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of both models."""
    out = tmp_path_factory.mktemp("known") / "gold"
    Answering.replies = {}
    for episode in evaluated(out, "diagnosis", "--gold", "--data", str(data)):
        Answering.replies[episode["transcript"][1]["content"]] = said_by_policy(episode)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}/v1"


@pytest.fixture(params=["gold", "silent"])
def policy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def wanted(policy: str, model: str, data: Path, tmp_path: Path) -> dict[str, float]:
    """The rewards of an evaluation, by task."""
    flags = ["--model", policy, "--base-url", model, "--data", str(data)]
    episodes = evaluated(tmp_path / "evaluation", "diagnosis", *flags)
    rewards = {one["id"]: one["reward"] for one in episodes}
    assert len(rewards) == TASKS
    assert all((reward > 0) == (policy == "gold") for reward in rewards.values())
    return rewards


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


@pytest.fixture(scope="module")
def verifiers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("verifiers"), "verifiers")


@pytest.fixture(scope="module")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("inspect"), "inspect")


@pytest.fixture(scope="module")
def openenv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("openenv"), "openenv")


def test_verifiers_gives_the_rewards(
    policy: str, model: str, data: Path, wanted: dict[str, float], verifiers: Path, tmp_path: Path
) -> None:
    where = ["--env.agent.runtime.type", "subprocess", "--client.base-url", model]
    key = ["--client.api-key-var", "OPENAI_API_KEY", "--no-push", "--no-rich"]
    tasks = ["--env.taskset.agent", "diagnosis", "--env.taskset.flags", f"--data '{data}'"]
    out = ["-o", tmp_path / "out"]
    run(
        [verifiers / "vf-eval", "medical-agents", "--model", policy, *where, *key, *tasks, *out],
        model,
        tmp_path,
    )
    [traces] = (tmp_path / "out").glob("*/traces.jsonl")
    found = {}
    for line in traces.read_text(encoding="utf-8").splitlines():
        [trace] = json.loads(line)["traces"]
        found[trace["task"]["data"]["id"]] = trace["rewards"]["reward"]["score"]
    assert found == wanted


def test_inspect_gives_the_rewards(
    policy: str, model: str, data: Path, wanted: dict[str, float], inspect: Path, tmp_path: Path
) -> None:
    chosen = ["--model", f"openai-api/local/{policy}", "-T", f"flags=--data '{data}'"]
    run(
        [inspect / "inspect", "eval", "medical_agents/diagnosis", *chosen, "--log-dir", "logs"],
        model,
        tmp_path,
    )
    [log] = (tmp_path / "logs").glob("*.eval")
    dumped = subprocess.run(
        [inspect / "inspect", "log", "dump", str(log)], check=True, capture_output=True, text=True
    )
    samples = json.loads(dumped.stdout)["samples"]
    assert {one["id"]: one["scores"]["own_reward"]["value"] for one in samples} == wanted
    assert all(one["messages"][-1]["role"] == "assistant" for one in samples)


@pytest.mark.parametrize("agent", ["diagnosis", "sql"])
@pytest.mark.parametrize("flags", [["--gold"], ["--baseline", "silent"]])
def test_openenv_gives_the_rewards(
    agent: str, flags: list[str], openenv: Path, tmp_path: Path
) -> None:
    known = evaluated(tmp_path / "evaluation", agent, *flags, "--n", str(TASKS))
    replies = {one["id"]: said_by_policy(one) for one in known}
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
    earned, after, unknown, unscored, refused = json.loads(client.stdout)
    assert earned == {one["id"]: one["reward"] for one in known}
    assert "reset" in after
    assert "no-such-task" in unknown
    assert "endpoint_error" in unscored
    named = ["seed is 'abc'", "seed is 1.5", "task is 5", "400 ", "500 "]
    assert [value for text, value in zip(refused, named, strict=True) if value not in text] == []
    assert "WebSocket" in refused[3]
    assert "no-such-task" in refused[4]
