"""Inspect tasks of the agents.

    inspect eval medical_agents/diagnosis --model openai/NAME

The agent plays its own episode; Inspect's model answers each call of the policy and keeps the
transcript. The score is the agent's own. An episode that could not be scored is an error of the
sample, never a score of 0.
"""

import shlex
from typing import Any

from inspect_ai import Task, task
from inspect_ai.agent import AgentState, agent_bridge
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import get_model, messages_from_openai
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from medical_agents.client import Player, tasks_of
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion

RESULT = "medical_agents:result"
ATTACHED = "attachment://"


@solver
def medical_agent(name: str, flags: list[str]) -> Solver:
    """Play the sample's episode."""
    player = Player(name, flags)  # it lives as long as this process

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        api: Any = get_model().api
        # Tools are sent as in training: marked as they are, and also where their use is forbidden
        api.strict_tools = False
        api.tools_required = lambda: True
        async with agent_bridge(AgentState(messages=state.messages)):
            client = AsyncOpenAI(api_key="none")

            async def complete(body: dict[str, Any]) -> dict[str, Any]:
                reply = await client.chat.completions.create(**{**body, "model": "inspect"})
                return completion_of(reply)

            result = await player.play(str(state.sample_id), complete)
        state.messages = await messages_from_openai(result.pop("messages"))
        state.store.set(RESULT, result)
        if result["reward"] is None:
            raise RuntimeError(f"unscored, {result['unscored']}: {result['detail']}")
        return state

    return solve


def completion_of(reply: ChatCompletion) -> dict[str, Any]:
    """Return Inspect's reply, with arguments of tool calls as the endpoint gave them, which Inspect
    mends. Raises ValueError: the prompt does not fit, which Inspect says in a reply.
    """
    events = transcript().events
    event = next(one for one in reversed(events) if isinstance(one, ModelEvent))
    if event.output.stop_reason == "model_length":
        raise ValueError(f"context length: {event.output.completion}")
    completion = reply.model_dump()
    response = event.call.response if event.call else None
    if not isinstance(response, dict) or "choices" not in response:
        return completion  # the endpoint speaks another protocol
    calls = completion["choices"][0]["message"]["tool_calls"] or []
    given = response["choices"][0]["message"].get("tool_calls") or []
    if len(calls) == len(given):
        # By position: not every endpoint gives each call an id of its own
        for call, own in zip(calls, given, strict=True):
            text = own["function"].get("arguments") or ""
            if isinstance(text, str):  # a long one stands elsewhere
                text = transcript().attachments.get(text.removeprefix(ATTACHED), text)
            call["function"]["arguments"] = text
    return completion


@scorer(metrics=[mean(), stderr()])
def own_reward() -> Scorer:
    """Report the agent's own reward, with its terms and facts beside it."""

    async def score(state: TaskState, target: Target) -> Score:
        result = state.store.get(RESULT)
        terms = ", ".join(f"{name} {value:.4g}" for name, value in result["terms"].items())
        return Score(
            value=result["reward"],
            answer=result["answer"],
            explanation=f"{terms} ({result['stop_reason']})",
            metadata=result,
        )

    return score


def task_of(name: str, flags: str) -> Task:
    """Return the Inspect task of an agent; `flags` are words of `.venv/bin/python -m interop.player`."""
    words = shlex.split(flags)
    samples = []
    for row in tasks_of(name, words):
        sample = Sample(
            id=row["id"],
            input=row["question"],
            target=row["reference"],
            metadata={"task_type": row["task_type"], "difficulty": row["difficulty"]},
        )
        samples.append(sample)
    return Task(
        dataset=MemoryDataset(samples, name=name),
        solver=medical_agent(name, words),
        scorer=own_reward(),
    )


def add_task(name: str) -> None:
    @task(name=name)
    def of_agent(flags: str = "") -> Task:
        return task_of(name, flags)


for bundled in ("sql", "consultation", "diagnosis", "code"):
    add_task(bundled)


@task
def agent_named(name: str, flags: str = "") -> Task:
    """An agent of one's own: `-T name=triage`."""
    return task_of(name, flags)
