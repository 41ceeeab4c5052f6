"""An OpenEnv server of an agent's episodes.

    ~/openenv/bin/python -m medical_agents.for_openenv diagnosis --port 8000

A step is a reply of the policy: an action is the assistant's message, an observation holds the
messages and tools of the next call. The reward is the agent's own and comes with the last step. An
episode that could not be scored is an error of the step, never a reward of 0.
"""

import argparse
import functools
import itertools
import shlex
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Literal

import uvicorn
from medical_agents.client import Episode, Player, PlayerError
from openenv.core.env_server import Action, Environment, Observation, State, create_app
from pydantic import ConfigDict, Field

# Seconds between a server's pings, and of waiting for an answer: a trainer may be busy that long
PING_SECONDS = 600.0


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
    task: str = ""


class MedicalEnvironment(Environment[Reply, Turn, EpisodeState]):
    """One session: an episode at a time. order: the tasks of resets that name none."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, player: Player, order: Iterator[int]) -> None:
        super().__init__()
        self._player = player
        self._order = order
        self._state = EpisodeState()
        self._episode: Episode | None = None

    async def reset_async(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task: str | None = None,
        **others: Any,
    ) -> Turn:
        """Begin an episode of the task that is named, that of a seed, or the next."""
        if not isinstance(seed, int | None) or not isinstance(task, str | None):
            raise RuntimeError(
                f"seed is {seed!r} and task is {task!r}; expected a whole number and the id of a "
                "task, or neither"
            )
        self.close()
        if task is None:
            index = next(self._order) if seed is None else seed
            task = self._player.tasks[index % len(self._player.tasks)]["id"]
        self._state = EpisodeState(episode_id=episode_id, task=task)
        self._episode = await self._player.begin(task)
        return await self._next(self._episode)

    async def step_async(
        self, action: Reply, timeout_s: float | None = None, **others: Any
    ) -> Turn:
        """Give the policy's reply to the episode."""
        if self._episode is None:
            raise RuntimeError("no episode waits for a reply; reset first, over the WebSocket")
        self._episode.reply(completion=completion(action))
        self._state.step_count += 1
        return await self._next(self._episode)

    async def _next(self, episode: Episode) -> Turn:
        """Return the next call of the policy, or the end. Raises RuntimeError: it is unscored."""
        line = await episode.next()
        task = self._state.task
        if "call" in line:
            body = line["body"]
            asked = {name: body[name] for name in ("tools", "tool_choice") if name in body}
            return Turn(task=task, messages=body["messages"], **asked)
        self.close()
        if line["reward"] is None:
            raise RuntimeError(f"unscored, {line['unscored']}: {line['detail']}")
        messages = line.pop("messages")
        return Turn(task=task, messages=messages, result=line, reward=line["reward"], done=True)

    def close(self) -> None:
        """Leave the episode. OpenEnv calls it in another thread at the end of a session."""
        if self._episode:
            self._episode.leave()
        self._episode = None

    @property
    def state(self) -> EpisodeState:
        return self._state

    def reset(self, seed: int | None = None, episode_id: str | None = None, **others: Any) -> Turn:
        raise NotImplementedError("the server calls reset_async")

    def step(self, action: Reply, timeout_s: float | None = None, **others: Any) -> Turn:
        raise NotImplementedError("the server calls step_async")


def completion(action: Reply) -> dict[str, Any]:
    """Return a reply as the chat completion that an endpoint would give."""
    message = action.model_dump(exclude={"metadata", "finish_reason"}, exclude_none=True)
    reason = action.finish_reason or ("tool_calls" if action.tool_calls else "stop")
    choice = {"index": 0, "message": {"content": None, **message}, "finish_reason": reason}
    return {"object": "chat.completion", "choices": [choice]}


def main() -> int:
    """Serve an agent by the flags of the command line."""
    parser = argparse.ArgumentParser(prog=f"{sys.executable} -m medical_agents.for_openenv")
    parser.add_argument("agent", help="sql, consultation, diagnosis, code, or one of your own")
    parser.add_argument("--flags", default="", help='of interop.player, such as "--data FILE"')
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--sessions", type=int, default=64, help="episodes at once (default: 64)")
    arguments = parser.parse_args()
    with closing(Player(arguments.agent, shlex.split(arguments.flags))) as player:
        try:
            player.start()
        except PlayerError as error:
            print(f"for_openenv: {error}", file=sys.stderr)
            return 1
        factory = functools.partial(MedicalEnvironment, player, itertools.count())
        app = create_app(factory, Reply, Turn, max_concurrent_envs=arguments.sessions)
        uvicorn.run(
            app,
            host=arguments.host,
            port=arguments.port,
            ws_ping_interval=PING_SECONDS,
            ws_ping_timeout=PING_SECONDS,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
