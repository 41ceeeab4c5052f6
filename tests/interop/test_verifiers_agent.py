"""A verifiers environment of somebody else is played as an agent, with its own reward."""

import asyncio
import sys
from contextlib import closing
from pathlib import Path

import pytest

from common.settings import load_settings
from episodes.agent import Sizes
from episodes.episode import AgentError, Message, Policy, Scored, ServiceError
from episodes.outcomes import EpisodeError
from episodes.play_and_score import play
from episodes.script import Script, tool_call
from interop.verifiers_agent import VerifiersAgent

pytestmark = pytest.mark.system

SECONDS = 300.0
# In the place of verifiers' Python: task 0 asks twice and pays, task 1 fails
PROGRAM = f"""#!{sys.executable}
import json, sys
def tell(**line):
    print(json.dumps(line), flush=True)
def ask(call, *messages):
    tell(episode=1, call=call, body={{"messages": list(messages)}})
    return json.loads(sys.stdin.readline())
tell(tasks=[{{"name": "first", "prompt": "one?"}}, {{"name": "second", "prompt": "two?"}}])
asked = {{"role": "user", "content": "one?", "name": None}}
for line in sys.stdin:
    task = json.loads(line)["task"]
    answer = ask(1, asked)
    if "completion" in answer:
        said = answer["completion"]["choices"][0]["message"]
        ask(2, asked, said, {{"role": "user", "content": "and?"}})
    tell(episode=1, rewards={{"right": 0.5, "short": 0.25}}, metrics={{"turns": 2.0}},
         failed="the world broke" if task == "1" else "")
    break
"""
TASKSET = """
import verifiers.v1 as vf

class Data(vf.TaskData):
    wanted: str

class Measuring(vf.Toolset[vf.ToolsetConfig, vf.State]):
    @vf.tool
    def measure(self, sign: str) -> str:
        "Measure a vital sign."
        return {"pulse": "72"}.get(sign, "there is no such sign")

class Vital(vf.Task[Data, vf.State, vf.TaskConfig]):
    @classmethod
    def toolsets(cls, config):
        return [Measuring(vf.ToolsetConfig())]

    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        return float(trace.last_reply == self.data.wanted)

class Vitals(vf.Taskset[Vital, vf.TasksetConfig]):
    def load(self):
        yield Vital(Data(prompt="What is the pulse?", wanted="72"), self.config.task)

__all__ = ["Vitals"]

if __name__ == "__main__":  # verifiers starts the tool server so
    Measuring.run()
"""


def agent_of(folder: Path, python: Path, taskset: str = "any") -> VerifiersAgent:
    return VerifiersAgent(
        "others",
        folder,
        python=str(python),
        env={"taskset": {"id": taskset}, "agent": {"max_turns": 3}},
        parts={"train": 1, "test": 1} if taskset == "any" else {"train": 1},
        sizes=Sizes(prompt=64, response=64, reply=16),
        turns=3,
    )


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "python"
    path.write_text(PROGRAM, encoding="utf-8")
    path.chmod(0o755)
    return path


def played(agent: VerifiersAgent, part: str, policy: Policy) -> Scored:
    agent.write_rows()
    settings = load_settings()
    task = agent.task(agent.rows(agent.splits[part])[0], settings)
    with closing(agent.open(settings, {})) as environment:
        return asyncio.run(play(environment, task, environment.play(task, policy), policy, SECONDS))


def test_its_reward_and_its_conversation_are_the_episodes(program, tmp_path):
    scored = played(agent_of(tmp_path, program), "train", Script(["1", "2"], 3))
    assert (scored.reward.total, scored.reward.terms) == (0.75, {"right": 0.5, "short": 0.25})
    assert [message["content"] for message in scored.episode.messages] == ["one?", "1", "and?", "2"]
    assert scored.episode.messages[0] == {"role": "user", "content": "one?"}
    assert (scored.episode.answer, scored.episode.stop_reason) == ("2", "answered")


def test_what_fails_there_is_unscored_and_says_why(program, tmp_path):
    scored = played(agent_of(tmp_path, program), "test", Script(["1"], 3))
    assert (scored.reward.total, scored.reward.unscored) == (None, "rollout_failed")
    assert "the world broke" in scored.detail


def test_a_policy_that_stops_earns_nothing_and_an_endpoint_that_fails_is_unscored(
    program, tmp_path
):
    class Failing(Script):
        async def reply(self, messages: object, tools: object = ()) -> Message:
            raise EpisodeError("endpoint_error", "status 500")

    stopped = played(agent_of(tmp_path, program), "train", Script(["1"], 1))
    assert (stopped.episode.stop_reason, stopped.reward.total) == ("max_turns", 0.0)
    failed = played(agent_of(tmp_path, program), "train", Failing(["1"], 3))
    assert failed.reward.unscored == "endpoint_error"


def test_what_cannot_give_the_rows_is_said(program, tmp_path, capfd):
    few = agent_of(tmp_path, program)
    few._parts = {"train": 2, "test": 1}
    with pytest.raises(AgentError, match=r"2 tasks.* 3"):
        few.write_rows()
    with pytest.raises(AgentError, match="nowhere"):
        agent_of(tmp_path, tmp_path / "nowhere").write_rows()
    agent = agent_of(tmp_path, Path("/usr/bin/env"))  # ends at once
    with closing(agent.open(load_settings(), {})) as environment:
        for _ in range(2):
            with pytest.raises(ServiceError):
                asyncio.run(environment.check())


@pytest.mark.nightly
def test_verifiers_itself_plays_a_task_with_a_tool(verifiers, tmp_path, monkeypatch):
    (tmp_path / "vitals.py").write_text(TASKSET, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    agent = agent_of(tmp_path, verifiers / "python", "vitals")
    measuring = tool_call("measuring_measure", {"sign": "pulse"})
    scored = played(agent, "train", Script([measuring, "72"], 3))
    assert scored.detail == ""
    assert (scored.reward.total, scored.reward.terms) == (1.0, {"right": 1.0})
    roles = [message["role"] for message in scored.episode.messages]
    assert roles[-3:] == ["assistant", "tool", "assistant"]
    assert scored.episode.tools[0]["function"]["name"] == "measuring_measure"
    wrong = played(agent, "train", Script([measuring, "80"], 3))
    assert wrong.reward.total == 0.0
