"""Play episodes of this project's agents from another program, in any Python environment.

    async with Player("diagnosis") as player:
        result = await player.play(task, complete)   # complete(body) -> completion

The agents run in the repository's own environment (`interop/player.py`), so this needs the standard
library alone. The repository is the folder that this file was installed from, or MEDICAL_AGENT_RL.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

Complete = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
PROGRAM = (".venv/bin/python", "-m", "interop.player")
LINE_BYTES = 64 * 2**20  # of one line: the messages of an episode, or the list of tasks


class PlayerError(Exception):
    """The player could not be started, or ended; the message says why."""


def repository() -> Path:
    """Return the folder of the repository. Raises PlayerError: it is not installed there."""
    named = os.environ.get("MEDICAL_AGENT_RL")
    folder = Path(named) if named else Path(__file__).resolve().parents[2]
    if not (folder / ".venv/bin/python").exists():
        raise PlayerError(
            f"{folder} has no .venv/bin/python; set MEDICAL_AGENT_RL to the folder of "
            "medical-agent-rl, in which ./install.sh was run"
        )
    return folder


def tasks_of(agent: str, flags: Sequence[str] = ()) -> list[dict[str, str]]:
    """Return an agent's tasks. Raises PlayerError: it cannot be started so."""
    return listed_by([*PROGRAM, agent, *flags], repository())


def listed_by(command: Sequence[str], folder: Path | None = None) -> list[dict[str, str]]:
    """Return the tasks that a program of this protocol lists. Raises PlayerError."""
    done = subprocess.run(command, cwd=folder, input=b"", capture_output=True, check=False)
    said = done.stderr.decode(errors="replace")
    print(said, end="", file=sys.stderr)
    if not done.stdout:
        last = said.strip().splitlines()[-1:]
        raise PlayerError(f"the player ended with {done.returncode}: {''.join(last)}")
    tasks: list[dict[str, str]] = json.loads(done.stdout)["tasks"]
    return tasks


async def _send(process: asyncio.subprocess.Process, line: dict[str, Any]) -> None:
    assert process.stdin
    text = json.dumps(line).encode() + b"\n"
    with contextlib.suppress(ConnectionError):  # the reader notices that the player has ended
        process.stdin.write(text)
        await process.stdin.drain()


async def _gone(body: dict[str, Any]) -> dict[str, Any]:
    raise PlayerError("nobody waits for this episode any more")


async def _answer(
    process: asyncio.subprocess.Process, line: dict[str, Any], complete: Complete
) -> None:
    """Give the process that asked its answer; the next one numbers its calls from 1 again."""
    try:
        answer = {"call": line["call"], "completion": await complete(line["body"])}
        json.dumps(answer)
    except Exception as error:
        answer = {"call": line["call"], "error": f"{type(error).__name__}: {error}"}
    await _send(process, answer)


class Episode(NamedTuple):
    """One that is being played.

    context: of its caller, in which its calls are answered, not in that of whoever started the
    player: Inspect tells by it to which sample a call belongs.
    """

    complete: Complete
    result: asyncio.Future[dict[str, Any]]
    context: contextvars.Context


class Player:
    """Plays episodes of an agent, many at once. Belongs to one event loop.

    Starts with `async with` or the first episode, and again with the next one after it ended.

    agent: its name. flags: of `.venv/bin/python -m interop.player`, such as ["--data", "FILE"]. command: of
    another program of this protocol, in their place. tasks: what it listed when it started.
    """

    def __init__(
        self, agent: str, flags: Sequence[str] = (), command: Sequence[str] | None = None
    ) -> None:
        self.tasks: list[dict[str, str]] = []
        self._command = command or [*PROGRAM, agent, *flags]
        self._own = command is None
        self._start: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._numbers = itertools.count(1)
        self._episodes: dict[int, Episode] = {}
        self._calls: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Player:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Start the program unless it runs. Raises PlayerError: it cannot be started so."""
        starting = self._start is not None and not self._start.done()
        if not starting and (self._reader is None or self._reader.done()):
            self._start = asyncio.create_task(self._begin())
        assert self._start
        await asyncio.shield(self._start)  # one of many episodes may be cancelled meanwhile

    async def _begin(self) -> None:
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            cwd=repository() if self._own else None,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_BYTES,
        )
        assert process.stdout
        first = await process.stdout.readline()
        if not first:
            code = await process.wait()
            raise PlayerError(f"the player ended with {code}; its words are above")
        self.tasks = json.loads(first)["tasks"]
        self._reader = asyncio.create_task(self._read(process, process.stdout))

    async def close(self) -> None:
        """End the program."""
        for task in (self._start, self._reader):
            if task:
                task.cancel()
        if self._process:
            if self._process.returncode is None:
                self._process.terminate()
            await self._process.wait()

    async def play(self, task: str, complete: Complete) -> dict[str, Any]:
        """Play an episode of a task, and return its result.

        complete: answers a call of the policy, the body of a chat completion, with the completion.
        What it raises leaves the episode unscored.

        Raises PlayerError: the player ended, the task is unknown, or the agent's code failed.
        """
        await self.start()
        if self._process is None or self._reader is None or self._reader.done():
            raise PlayerError("the player has ended; its last words are above")
        number = next(self._numbers)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._episodes[number] = Episode(complete, future, contextvars.copy_context())
        try:
            await _send(self._process, {"episode": number, "task": task})
            result = await future
        finally:
            del self._episodes[number]
        if "error" in result:
            raise PlayerError(result["error"])
        return result

    async def _read(self, process: asyncio.subprocess.Process, lines: asyncio.StreamReader) -> None:
        try:
            while text := await lines.readline():
                self._take(process, json.loads(text))
        finally:
            for episode in self._episodes.values():
                if not episode.result.done():
                    ended = PlayerError("the player ended; its last words are above")
                    episode.result.set_exception(ended)

    def _take(self, process: asyncio.subprocess.Process, line: dict[str, Any]) -> None:
        episode = self._episodes.get(line["episode"])
        if "call" in line:
            complete, context = (episode.complete, episode.context) if episode else (_gone, None)
            call = asyncio.create_task(_answer(process, line, complete), context=context)
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
        elif episode and not episode.result.done():
            del line["episode"]
            episode.result.set_result(line)
