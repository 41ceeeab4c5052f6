"""verifiers, Inspect and OpenEnv play an agent by their own programs, with the rewards of an
evaluation.

Installs each in an environment of its own: they need different versions of openai.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from common.settings import ROOT
from episodes import registry
from episodes.agent import SERVED_NAME
from evaluation import evaluate
from tests.interop.conftest import installed
from tests.messages import missing
from tests.runs import free_port
from tests.serving import JsonHandler, serving
from training.serve import serve

pytestmark = [pytest.mark.system, pytest.mark.nightly]

TASKS = 4
REPLY_TOKENS = 96
OVERLONG = "This model's maximum context length is 768 tokens, and your request has 900."
# Inspect's own reader of a log
READ_LOG = """
import json, sys
from inspect_ai.log import read_eval_log

samples = []
for one in read_eval_log(sys.argv[1]).samples:
    calls = [event for event in one.events if event.event == "model" and not event.error]
    score = one.scores["own_reward"]
    roles = [message.role for message in one.messages]
    samples.append([one.id, score.value, score.metadata, score.explanation, roles, len(calls)])
print(json.dumps(samples))
"""
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
refused = [
    failed(env.reset, seed="abc"),
    failed(env.reset, seed=1.5),
    failed(env.reset, task=5),
]
print(json.dumps([rewards, after, unknown, unscored, refused]))
"""
Replies = dict[str, list[dict[str, Any]]]  # by the first words of the patient


class Answering(JsonHandler):
    """The models `gold`, `silent`, `careless` (calls without JSON), `overlong` (nothing fits)."""

    replies: ClassVar[Replies] = {}
    asked_for: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = self.asked()
        self.asked_for.append(body)
        said = [one for one in body["messages"] if one["role"] == "assistant"]
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        if body["model"] == "overlong":
            self.answer({"error": {"message": OVERLONG, "code": 400}}, 400)
            return
        if body["model"] == "gold":
            message = self.replies[body["messages"][1]["content"]][len(said)]
        if body["model"] == "careless":
            [tool] = body["tools"]
            function = {"name": tool["function"]["name"], "arguments": "SELECT 1"}
            message["tool_calls"] = [{"id": "1", "type": "function", "function": function}]
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


@dataclass(frozen=True)
class Case:
    """An agent's tasks, and who plays them where."""

    agent: str
    model: str
    url: str
    data: Path


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A few tasks of each agent, in a folder whose name has a blank."""
    folder = tmp_path_factory.mktemp("some cases")
    files = {}
    for name in ("diagnosis", "sql"):
        agent = registry.get(name)
        rows = [json.dumps(row) for row in agent.rows(agent.splits["test"])[:TASKS]]
        files[name] = folder / f"{name}.jsonl"
        files[name].write_text("\n".join(rows), encoding="utf-8")
    return files


@pytest.fixture(scope="module")
def stand_in(tasks: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of models that know what to say."""
    for name, data in tasks.items():
        out = tmp_path_factory.mktemp("known") / name
        for episode in evaluated(out, name, "--gold", "--data", str(data)):
            Answering.replies[episode["transcript"][1]["content"]] = said_by_policy(episode)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}/v1"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of the bundled model that plays every agent."""
    log = tmp_path_factory.mktemp("tiny") / "vllm.log"
    with serve(str(ROOT / "episodes" / "tiny_model"), log, device="cpu") as server:
        yield server.base_url


PLAYERS = [
    ("diagnosis", "gold"),
    ("diagnosis", "silent"),
    ("sql", "gold"),
    ("sql", "careless"),
    ("sql", "overlong"),
    pytest.param(("diagnosis", SERVED_NAME), marks=pytest.mark.engine),
    pytest.param(("sql", SERVED_NAME), marks=pytest.mark.engine),
]


@pytest.fixture(params=PLAYERS, ids="-".join)
def case(request: pytest.FixtureRequest, tasks: dict[str, Path]) -> Case:
    agent, model = request.param
    url = request.getfixturevalue("tiny" if model == SERVED_NAME else "stand_in")
    return Case(agent, model, url, tasks[agent])


@dataclass(frozen=True)
class Wanted:
    """What an evaluation gives: reward and stop reason by task, and what the model was asked."""

    ends: dict[str, tuple[float, str]]
    prompts: list[str]


def prompts() -> list[str]:
    """What the stand-in was asked since this was called last."""
    asked = []
    for body in Answering.asked_for:
        for message in body["messages"]:
            for call in message.get("tool_calls", ()):  # Inspect escapes characters
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        asked.append(json.dumps([body["messages"], body.get("tools")], sort_keys=True))
    Answering.asked_for.clear()
    return sorted(asked)


@pytest.fixture
def wanted(case: Case, tmp_path: Path) -> Wanted:
    flags = ["--model", case.model, "--base-url", case.url, "--data", str(case.data)]
    flags += ["--temperature", "0", "--max-tokens", str(REPLY_TOKENS)]
    prompts()
    episodes = evaluated(tmp_path / "evaluation", case.agent, *flags)
    ends = {one["id"]: (one["reward"], one["stop_reason"]) for one in episodes}
    assert len(ends) == TASKS
    rewards = [reward for reward, _ in ends.values()]
    if case.model == SERVED_NAME:
        assert max(rewards) > 0.5
    else:
        assert (min(rewards) > 0.5) == (case.model == "gold")
    return Wanted(ends, prompts())


def run(command: list[Any], model: str, folder: Path) -> None:
    keys = {"LOCAL_BASE_URL": model, "LOCAL_API_KEY": "none", "OPENAI_API_KEY": "none"}
    subprocess.run(
        [str(word) for word in command], cwd=folder, env={**os.environ, **keys}, check=True
    )


@pytest.fixture(scope="module")
def openenv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("openenv"), "openenv")


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a line for each start of a player."""
    folder, file = tmp_path / "repository", tmp_path / "starts"
    python = folder / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    lines = ["#!/bin/sh", f"echo >> '{file}'", f"cd '{ROOT}'", f"exec '{sys.executable}' \"$@\""]
    python.write_text("\n".join(lines), encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setenv("MEDICAL_AGENT_RL", str(folder))
    return file


def test_verifiers_gives_the_rewards(
    case: Case, wanted: Wanted, verifiers: Path, starts: Path, tmp_path: Path
) -> None:
    where = ["--env.agent.runtime.type", "subprocess", "--client.base-url", case.url]
    where += ["--client.api-key-var", "OPENAI_API_KEY", "--no-push", "--no-rich"]
    chosen = ["--env.taskset.agent", case.agent, "--env.taskset.flags", f"--data '{case.data}'"]
    chosen += ["--sampling.temperature", "0", "--sampling.max-tokens", str(REPLY_TOKENS)]
    out = ["-o", tmp_path / "out"]
    run(
        [verifiers / "vf-eval", "medical-agents", "--model", case.model, *where, *chosen, *out],
        case.url,
        tmp_path,
    )
    [traces] = (tmp_path / "out").glob("*/traces.jsonl")
    # verifiers lets no agent score an episode in which the model's server refused
    ends = {} if case.model == "overlong" else wanted.ends
    found = {}
    for line in traces.read_text(encoding="utf-8").splitlines():
        [trace] = json.loads(line)["traces"]
        if trace["rewards"]:
            reward, result = trace["rewards"]["reward"]["score"], trace["info"]["result"]
            found[trace["task"]["data"]["id"]] = reward, result["stop_reason"]
        else:
            assert OVERLONG in trace["errors"][0]["message"]
    assert (found, prompts()) == (ends, wanted.prompts)
    assert len(starts.read_text(encoding="utf-8").splitlines()) == 2, "for the list, and to play"


def test_inspect_gives_the_rewards(
    case: Case, wanted: Wanted, inspect: Path, tmp_path: Path
) -> None:
    chosen = ["--model", f"openai-api/local/{case.model}", "-T", f"flags=--data '{case.data}'"]
    chosen += ["--temperature", "0", "--max-tokens", str(REPLY_TOKENS)]
    run(
        [inspect / "inspect", "eval", f"medical_agents/{case.agent}", *chosen, "--log-dir", "logs"],
        case.url,
        tmp_path,
    )
    [log] = (tmp_path / "logs").glob("*.eval")
    read = [inspect / "python", "-c", READ_LOG, str(log)]
    samples = json.loads(subprocess.run(read, check=True, capture_output=True).stdout)
    found = {}
    for identity, reward, result, explanation, roles, calls in samples:
        found[identity] = reward, result["stop_reason"]
        assert sum(result["terms"].values()) == pytest.approx(reward)
        assert not missing(explanation, *result["terms"])
        assert roles.count("assistant") == calls, "in the transcript of its own sample"
    assert (found, prompts()) == (wanted.ends, wanted.prompts)


@pytest.fixture
def player(request: pytest.FixtureRequest) -> list[str]:
    if request.param != "tiny":
        return [request.param]
    url = request.getfixturevalue("tiny")
    sampling = ["--temperature", "0", "--max-tokens", str(REPLY_TOKENS)]
    return ["--model", SERVED_NAME, "--base-url", url, *sampling]


@pytest.mark.parametrize(
    ("agent", "player"),
    [
        ("diagnosis", "--gold"),
        ("diagnosis", "--baseline=silent"),
        pytest.param("diagnosis", "tiny", marks=pytest.mark.engine),
        ("sql", "--gold"),
        ("sql", "--baseline=silent"),
    ],
    indirect=["player"],
)
def test_openenv_gives_the_rewards(
    agent: str, player: list[str], openenv: Path, tmp_path: Path
) -> None:
    known = evaluated(tmp_path / "evaluation", agent, *player, "--n", str(TASKS))
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
    named = ["seed is 'abc'", "seed is 1.5", "task is 5"]
    assert [value for text, value in zip(refused, named, strict=True) if value not in text] == []
