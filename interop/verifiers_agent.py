"""A verifiers environment of somebody else as an agent here, with its own reward (docs/interop.md).

    # hangman_agent/agent.py
    AGENT = VerifiersAgent("hangman", Path(__file__).parent, python="~/verifiers/bin/python",
                           env={"taskset": {"id": "textarena", "game": "Hangman-v0"}}, ...)

The environment runs in verifiers' own Python (interop/verifiers_guest.py).
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.jsonl import write_jsonl
from common.settings import Settings
from episodes import agent as contract
from episodes.agent import Options, Row, Sizes
from episodes.episode import AgentError, Episode, Policy, ServiceError, Task, ToolSpec
from episodes.outcomes import EpisodeError, PolicyStop
from episodes.row_files import read_rows
from interop.medical_agents.client import Player, PlayerError
from scoring.rubric import Reward

GUEST = Path(__file__).with_name("verifiers_guest.py")


@dataclass(frozen=True, kw_only=True)
class VerifiersTask(Task):
    index: int  # in the taskset


class VerifiersEnvironment(contract.Environment):
    """Plays in the guest."""

    def __init__(self, command: Sequence[str], highest: float) -> None:
        self.highest = highest
        self._player = Player("", command=command)

    async def play(self, task: Any, policy: Policy) -> Episode:
        episode = Episode()
        ends: list[EpisodeError | PolicyStop] = []

        async def complete(body: dict[str, Any]) -> dict[str, Any]:
            episode.messages = []
            for message in body["messages"]:  # as the policy's template reads it
                told = {name: value for name, value in message.items() if value is not None}
                episode.messages.append(told)
            episode.tools = body.get("tools") or []
            before = policy.completion_tokens
            try:
                message = await policy.reply(episode.messages, episode.tools)
            except (EpisodeError, PolicyStop) as error:
                ends.append(error)
                raise
            episode.reply_tokens.append(policy.completion_tokens - before)
            episode.messages.append(message)
            episode.answer = message.get("content")
            reason = "tool_calls" if message.get("tool_calls") else policy.finish_reason or "stop"
            choice = {"index": 0, "message": message, "finish_reason": reason}
            known = {"id": "policy", "object": "chat.completion", "created": 0, "model": "policy"}
            return {**known, "choices": [choice]}

        try:
            result = await self._player.play(str(task.index), complete)
        except PlayerError as error:
            raise EpisodeError("rollout_failed", str(error)) from error
        stopped = ends[0] if ends else None
        if isinstance(stopped, EpisodeError):
            raise stopped
        if stopped:
            episode.stop_reason = stopped.reason
            result["rewards"] = {}
        elif result["failed"]:
            raise EpisodeError("rollout_failed", result["failed"])
        else:
            episode.stop_reason = "answered"
        episode.events.append(result)
        return episode

    async def score(self, task: Task, episode: Episode) -> Reward:
        terms = dict(episode.events[-1]["rewards"])
        total = sum(terms.values())
        return Reward(total, terms, score=min(1.0, max(0.0, total / self.highest)))

    def record(self, task: Task, episode: Episode) -> contract.Record:
        return {"facts": dict(episode.events[-1]["metrics"]) if episode.events else {}}

    async def check(self) -> None:
        try:
            await asyncio.to_thread(self._player.start)
        except PlayerError as error:
            raise ServiceError(f"verifiers' environment does not start: {error}") from None

    def close(self) -> None:
        self._player.close()


class VerifiersAgent(contract.Agent):
    """An agent that plays an `[env]` block of verifiers. Each seat without a model of its own is
    the policy; give its `max_turns` there, and no more than `turns` here.

    parts: how many tasks go to "train", "val" and "test". highest: the most that an episode earns.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        python: str,
        env: Mapping[str, Any],
        parts: Mapping[str, int],
        sizes: Sizes,
        turns: int,
        highest: float = 1.0,
        tools: Sequence[ToolSpec] = (),
    ) -> None:
        self.name, self.turns, self.tools = name, turns, tools
        self.splits = {part: folder / f"{part}.jsonl" for part in parts}
        self._parts, self._sizes, self._highest = parts, sizes, highest
        self._python = Path(python).expanduser()
        self._block = json.dumps(dict(env))

    def sizes(self, device: str) -> Sizes:
        return self._sizes

    @property
    def command(self) -> list[str]:
        """The guest's. Raises AgentError: its Python is not there."""
        if not self._python.is_file():
            raise AgentError(
                f"{self._python} is not there; expected the Python that has verifiers (docs/interop.md)"
            )
        return [str(self._python), str(GUEST), self._block, str(sum(self._parts.values()))]

    def write_rows(self) -> None:
        """Write the data files: the tasks of the environment, in its order."""
        with closing(Player("", command=self.command)) as player:
            player.start()
        rows = []
        wanted = sum(self._parts.values())
        if len(player.tasks) < wanted:
            raise AgentError(f"verifiers has {len(player.tasks)} tasks; parts asks for {wanted}")
        for at, task in enumerate(player.tasks):
            rows.append({"id": f"{self.name}-{at}", "index": at, **task})
        for part, count in self._parts.items():
            write_jsonl(self.splits[part], rows[:count], force=True)
            rows = rows[count:]

    def rows(self, path: Path) -> list[Row]:
        return read_rows(path, "tasks")

    def task(self, row: Row, settings: Settings) -> VerifiersTask:
        if not isinstance(row.get("index"), int):
            raise AgentError(f"row {row.get('id')!r}: expected the index of a task")
        return VerifiersTask(id=row["id"], question=str(row["prompt"]), index=row["index"])

    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Any:
        return VerifiersEnvironment(self.command, self._highest)
