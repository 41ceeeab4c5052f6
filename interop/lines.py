"""The side of a protocol of JSON lines that plays episodes for a program outside.

The first line out lists the tasks. A line in asks for an episode, `{"episode": 1, "task": "ID"}`,
or leaves it, with null as its task.
Each call of the policy is a line out, `{"episode": 1, "call": 2, "body": {...}}` with the body of a
chat completion, and its reply a line in, `{"call": 2, "completion": {...}}`, or `"error"` with what
failed. The end is a line out with the episode's result, or with `"error"`.
`interop/medical_agents/client.py` is the other side. Standard library only.
"""

import asyncio
import itertools
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

LINE_BYTES = 64 * 2**20  # of one line: a completion


class Outside:
    """The program outside: asked for replies, and told results."""

    def __init__(self) -> None:
        """Keep standard output for the lines: whatever else prints goes to standard error now."""
        self._lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._running: dict[int, asyncio.Task[None]] = {}

    async def asked(self, episode: int, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a call of the policy, with its `completion` or its `error`."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self._tell({"episode": episode, "call": number, "body": body})
        try:
            return await self._waiting[number]
        finally:
            del self._waiting[number]

    async def serve(
        self,
        tasks: list[dict[str, Any]],
        play: Callable[[int, str], Awaitable[dict[str, Any]]],
    ) -> None:
        """List the tasks, and play what is asked for until standard input ends.

        play: returns the result of an episode, by its number and its task.
        """

        async def run(number: int, task: str) -> None:
            try:
                result = await play(number, task)
            except Exception as error:
                traceback.print_exc()
                result = {"error": f"{type(error).__name__}: {error}"}
            finally:
                del self._running[number]
            self._tell({"episode": number, **result})

        self._tell({"tasks": tasks})
        reader = asyncio.StreamReader(limit=LINE_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
        while text := await reader.readline():
            line = json.loads(text)
            if "call" in line:
                future = self._waiting.get(line["call"])  # its episode may have ended
                if future and not future.done():
                    future.set_result(line)
            elif line["task"] is not None:
                running = asyncio.create_task(run(line["episode"], line["task"]))
                self._running[line["episode"]] = running
            elif line["episode"] in self._running:
                self._running[line["episode"]].cancel()

    def _tell(self, line: dict[str, Any]) -> None:
        print(json.dumps(line), file=self._lines, flush=True)
