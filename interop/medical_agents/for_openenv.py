"""An OpenEnv server of an agent's episodes.

    ~/openenv/bin/python -m medical_agents.for_openenv diagnosis --port 8000

A step is a reply of the policy: an action is the assistant's message, an observation holds the
messages and tools of the next call. The reward is the agent's own and comes with the last step. An
episode that could not be scored is an error of the step, never a reward of 0.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import itertools
import shlex
import sys
import uuid
from typing import Any, Literal

import uvicorn
from medical_agents.client import Player, PlayerError
from openenv.core.env_server import Action, Environment, Observation, State, create_app
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import JSONResponse

# Seconds between a server's pings, and of waiting for an answer: a trainer may be busy that long
PING_SECONDS = 600.0


class Refused(RuntimeError):
    """A reset or a step that cannot be done; the message says why."""


class Reply(Action):
    """The assistant's message; fields that some models add, such as their reasoning, are kept."""

    model_config = ConfigDict(extra="allow")

    role: Literal["assistant"] = "assistant"
    content: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    finish_reason: str | None = None
    """"length" if the reply was cut."""


class Turn(Observation):
    """What the policy has to answer, or, when it is done, how the episode went."""

    task: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = Field(default_factory=list)
    tool_choice: str | None = None
    result: dict[str, Any] | None = None


class EpisodeState(State):
    task: str | None = None


class Tasks:
    """An agent's player and its tasks, one after the other."""

    def __init__(self, agent: str, player: Player) -> None:
        self.agent, self.player = agent, player
        self._order = itertools.count()

    def chosen(self, task: object, seed: object) -> str:
        """Return the id of a task: the one named, that of a seed, or the next. Raises Refused."""
        if isinstance(task, str):
            return task
        if task is not None:
            raise Refused(f"task is {task!r}, but it has to be the id of a task, a text")
        if seed is not None and not isinstance(seed, int):
            raise Refused(f"seed is {seed!r}, but it has to be a whole number, or left out")
        index = next(self._order) if seed is None else seed
        return self.player.tasks[index % len(self.player.tasks)]["id"]


class MedicalEnvironment(Environment[Reply, Turn, EpisodeState]):
    """One session: an episode at a time, turned inside out."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, tasks: Tasks) -> None:
        super().__init__()
        self._tasks = tasks
        self._state = EpisodeState()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._playing: asyncio.Task[dict[str, Any]] | None = None
        self._calls: asyncio.Queue[tuple[dict[str, Any], asyncio.Future[Any]]] = asyncio.Queue()
        self._asked: asyncio.Future[Any] | None = None

    async def reset_async(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task: str | None = None,
        **others: Any,
    ) -> Turn:
        """Begin an episode of a task."""
        self._end()
        self._loop = asyncio.get_running_loop()
        chosen = self._tasks.chosen(task, seed)
        self._state = EpisodeState(episode_id=episode_id or str(uuid.uuid4()), task=chosen)
        self._calls = asyncio.Queue()
        playing = self._tasks.player.play(chosen, functools.partial(ask, self._calls))
        self._playing = asyncio.create_task(playing)
        return await self._next()

    async def step_async(
        self, action: Reply, timeout_s: float | None = None, **others: Any
    ) -> Turn:
        """Give the policy's reply to the episode."""
        if self._asked is None:
            raise Refused("no episode waits for a reply; reset first, over the WebSocket")
        self._asked.set_result(completion(action))
        self._asked = None
        self._state.step_count += 1
        return await self._next()

    async def _next(self) -> Turn:
        """Return the next call of the policy, or the end. Raises RuntimeError: it is unscored."""
        assert self._playing
        call = asyncio.create_task(self._calls.get())
        await asyncio.wait([call, self._playing], return_when=asyncio.FIRST_COMPLETED)
        task = str(self._state.task)
        if not self._playing.done():
            body, self._asked = call.result()
            asked = {name: body[name] for name in ("tools", "tool_choice") if name in body}
            return Turn(task=task, messages=body["messages"], **asked)
        call.cancel()
        result = self._playing.result()
        reward, messages = result["reward"], result.pop("messages")
        if reward is None:
            raise RuntimeError(f"unscored, {result['unscored']}: {result['detail']}")
        return Turn(task=task, messages=messages, result=result, reward=reward, done=True)

    def _end(self) -> None:
        """Leave the episode; the calls of its policy fail."""
        waiting = [self._asked] if self._asked else []
        while not self._calls.empty():
            waiting.append(self._calls.get_nowait()[1])
        for future in waiting:
            if not future.done():
                future.set_exception(ConnectionError("the client left the episode"))
        self._asked = None
        if self._playing:
            self._playing.cancel()

    def close(self) -> None:
        """End the session. OpenEnv calls it in another thread."""
        if self._loop:
            self._loop.call_soon_threadsafe(self._end)

    @property
    def state(self) -> EpisodeState:
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        about = f"The {self._tasks.agent} agent of medical-agent-rl: a step is a policy's reply"
        return EnvironmentMetadata(name=f"medical-agents-{self._tasks.agent}", description=about)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **others: Any) -> Turn:
        raise NotImplementedError("the server calls reset_async")

    def step(self, action: Reply, timeout_s: float | None = None, **others: Any) -> Turn:
        raise NotImplementedError("the server calls step_async")


async def ask(calls: asyncio.Queue[Any], body: dict[str, Any]) -> dict[str, Any]:
    """Put a call of the policy before the client, and return the completion it gives."""
    answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
    calls.put_nowait((body, answer))
    return await answer


def completion(action: Reply) -> dict[str, Any]:
    """Return a reply as the chat completion that an endpoint would give."""
    message = action.model_dump(exclude={"metadata", "finish_reason"}, exclude_none=True)
    reason = action.finish_reason or ("tool_calls" if action.tool_calls else "stop")
    choice = {"index": 0, "message": {"content": None, **message}, "finish_reason": reason}
    return {"object": "chat.completion", "choices": [choice]}


def told(request: Request, error: Exception) -> JSONResponse:
    """Return an error over HTTP with its words, as the WebSocket gives them."""
    return JSONResponse({"detail": str(error)}, 400 if isinstance(error, Refused) else 500)


async def serve(arguments: argparse.Namespace) -> None:
    """Serve until stopped. Raises PlayerError: the agent cannot be started."""
    async with Player(arguments.agent, shlex.split(arguments.flags)) as player:
        factory = functools.partial(MedicalEnvironment, Tasks(arguments.agent, player))
        app = create_app(factory, Reply, Turn, max_concurrent_envs=arguments.sessions)
        app.add_exception_handler(Refused, told)
        app.add_exception_handler(PlayerError, told)
        config = uvicorn.Config(
            app,
            host=arguments.host,
            port=arguments.port,
            ws_ping_interval=PING_SECONDS,
            ws_ping_timeout=PING_SECONDS,
        )
        await uvicorn.Server(config).serve()


def main() -> int:
    """Serve an agent by the flags of the command line."""
    parser = argparse.ArgumentParser(prog=f"{sys.executable} -m medical_agents.for_openenv")
    parser.add_argument("agent", help="sql, consultation, diagnosis, code, or one of your own")
    parser.add_argument("--flags", default="", help='of interop.player, such as "--data FILE"')
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--sessions", type=int, default=64, help="episodes at once (default: 64)")
    try:
        asyncio.run(serve(parser.parse_args()))
    except PlayerError as error:
        print(f"for_openenv: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
