"""A verifiers taskset of an agent's tasks, and the harness that plays them.

    vf-eval medical-agents --env.taskset.agent diagnosis --model NAME

The agent plays its own episode; every call of the policy goes through verifiers' endpoint, which
records and trains on it. The reward is the agent's own. An episode that could not be scored is an
error of the rollout, never a reward of 0.
"""

import functools
import shlex
from collections.abc import Iterator
from typing import Any

import httpx
import verifiers.v1 as vf
from medical_agents.client import Player, tasks_of

SECONDS = 600.0  # of one call of the policy


@functools.cache  # verifiers makes a harness for each episode
def player_of(agent: str, flags: str) -> Player:
    return Player(agent, shlex.split(flags))


class MedicalTasksetConfig(vf.TasksetConfig):
    agent: str = "diagnosis"
    """The agent: sql, consultation, diagnosis, code, or one of your own."""
    flags: str = ""
    """Flags of `.venv/bin/python -m interop.player`, such as "--data FILE"."""


class MedicalData(vf.TaskData):
    agent: str
    flags: str
    reference: str


class MedicalTask(vf.Task[MedicalData, vf.State, vf.TaskConfig]):
    @vf.reward
    async def reward(self, trace: vf.Trace) -> float:
        """What the agent's own scoring gave."""
        return float(trace.info["result"]["reward"])

    @vf.metric
    async def facts(self, trace: vf.Trace) -> dict[str, float]:
        """The answer's score, the reward's terms, and the agent's numbers of the episode."""
        result = trace.info["result"]
        numbers = {"score": result["score"], **result["terms"], **result["facts"]}
        return {name: float(value) for name, value in numbers.items() if value is not None}


class MedicalTaskset(vf.Taskset[MedicalTask, MedicalTasksetConfig]):
    def load(self) -> Iterator[MedicalTask]:
        """Yield the agent's tasks."""
        config = self.config
        for task in tasks_of(config.agent, shlex.split(config.flags)):
            data = MedicalData(
                id=task["id"],
                prompt=task["question"],
                agent=config.agent,
                flags=config.flags,
                reference=task["reference"],
            )
            yield MedicalTask(data, config.task)


class MedicalHarnessConfig(vf.HarnessConfig):
    pass


class MedicalHarness(vf.Harness[MedicalHarnessConfig]):
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False
    APPENDS_SYSTEM_PROMPT = True

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: MedicalData,
    ) -> vf.ProgramResult:
        """Play the episode here, with the calls of its policy sent to verifiers' endpoint."""
        headers = {"Authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(timeout=SECONDS, headers=headers) as client:

            async def complete(body: dict[str, Any]) -> dict[str, Any]:
                asked = {**body, "model": ctx.model}
                reply = await client.post(f"{endpoint}/chat/completions", json=asked)
                reply.raise_for_status()
                completion: dict[str, Any] = reply.json()
                return completion

            result = await player_of(data.agent, data.flags).play(str(data.id), complete)
        trace.info["result"] = result
        if result["reward"] is None:
            raise vf.HarnessError(f"unscored, {result['unscored']}: {result['detail']}")
        return vf.ProgramResult(exit_code=0, stdout=result["answer"] or "", stderr="")
