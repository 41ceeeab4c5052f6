"""Play episodes of this project's agents from another program, in any Python environment.

    with closing(Player("diagnosis")) as player:
        result = await player.play(task, complete)   # complete(body) -> completion

The agents run in the repository's own environment (`interop/player.py`), so this needs the standard
library alone. The repository is the folder that this file was installed from, or MEDICAL_AGENT_RL.
"""

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

Complete = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
PYTHON = ".venv/bin/python"


class PlayerError(Exception):
    """The player could not be started, or ended; the message says why."""


def repository() -> Path:
    """Return the folder of the repository. Raises PlayerError: it is not installed there."""
    named = os.environ.get("MEDICAL_AGENT_RL")
    folder = Path(named) if named else Path(__file__).resolve().parents[2]
    if not (folder / PYTHON).exists():
        raise PlayerError(
            f"{folder} has no {PYTHON}; set MEDICAL_AGENT_RL to the folder of medical-agent-rl, "
            "in which ./install.sh was run"
        )
    return folder


def tasks_of(agent: str, flags: Sequence[str] = ()) -> list[dict[str, str]]:
    """Return an agent's tasks. Raises PlayerError: it cannot be started so."""
    with contextlib.closing(Player(agent, flags)) as player:
        player.start()
        return player.tasks


class Player:
    """Plays episodes of an agent, many at once and in any event loop.

    agent: its name. flags: of `.venv/bin/python -m interop.player`, such as ["--data", "FILE"].
    command: of another program of this protocol, in their place. tasks: what it listed.
    """

    def __init__(
        self, agent: str, flags: Sequence[str] = (), command: Sequence[str] | None = None
    ) -> None:
        self.tasks: list[dict[str, str]] = []
        self.episodes: dict[int, Episode] = {}
        self._command = command
        self._arguments = (PYTHON, "-m", "interop.player", agent, *flags)
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    def start(self) -> None:
        """Start the program unless it was started. Raises PlayerError: it cannot be started so."""
        with self._lock:
            if self._process:
                return
            process = subprocess.Popen(
                self._command or self._arguments,
                cwd=None if self._command else repository(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert process.stdout
            first = process.stdout.readline()
            if not first:
                raise PlayerError(f"the player ended with {process.wait()}; its words are above")
            self.tasks = json.loads(first)["tasks"]
            self._process = process
            threading.Thread(target=self._read, args=[process.stdout], daemon=True).start()

    def close(self) -> None:
        """End the program."""
        if self._process:
            self._process.terminate()
            self._process.wait()

    async def begin(self, task: str) -> "Episode":
        """Begin an episode of a task. Raises PlayerError."""
        await asyncio.to_thread(self.start)
        number = next(self._numbers)
        episode = self.episodes[number] = Episode(self, number)
        if self._ended:
            episode.tell(ENDED)
        self.send({"episode": number, "task": task})
        return episode

    async def play(self, task: str, complete: Complete) -> dict[str, Any]:
        """Play an episode of a task, and return its result.

        complete: answers a call of the policy, the body of a chat completion, with the completion.
        What it raises leaves the episode unscored.

        Raises PlayerError: the player ended, the task is unknown, or the agent's code failed.
        """
        episode = await self.begin(task)
        try:
            while "call" in (line := await episode.next()):
                try:
                    episode.reply(completion=await complete(line["body"]))
                except Exception as error:
                    episode.reply(error=f"{type(error).__name__}: {error}")
            return line
        finally:
            episode.leave()

    def send(self, line: dict[str, Any]) -> None:
        """Write a line to the program. Whoever waits is told if it has ended."""
        text = json.dumps(line).encode() + b"\n"
        assert self._process
        assert self._process.stdin
        with self._lock, contextlib.suppress(OSError):
            self._process.stdin.write(text)
            self._process.stdin.flush()

    def _read(self, lines: Any) -> None:
        for text in lines:
            line = json.loads(text)
            if episode := self.episodes.get(line.pop("episode")):  # it may have been left
                episode.tell(line)
        self._ended = True
        for episode in list(self.episodes.values()):
            episode.tell(ENDED)


ENDED = {"error": "the player ended; its last words are above"}


class Episode:
    """An episode that is being played: its calls of the policy, one after the other."""

    def __init__(self, player: Player, number: int) -> None:
        self._player = player
        self._number = number
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._call: int | None = None

    async def next(self) -> dict[str, Any]:
        """Return the next call, or the result, which has no `call`. Raises PlayerError."""
        line = await self._lines.get()
        if "error" in line:
            raise PlayerError(line["error"])
        self._call = line.get("call")
        return line

    def reply(self, **answer: Any) -> None:
        """Answer the last call with a `completion` or an `error`. Raises TypeError: no JSON."""
        self._player.send({"call": self._call, **answer})

    def leave(self) -> None:
        """Take no further part in the episode, which ends if it has not ended yet."""
        self._player.episodes.pop(self._number, None)
        self._player.send({"episode": self._number, "task": None})

    def tell(self, line: dict[str, Any]) -> None:
        """Take a line of the program, in any thread."""
        with contextlib.suppress(RuntimeError):  # its loop has ended
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
