"""Stands between a client and a stdio server that others wrote: passes lines on, and ends the
server when it floods or when the client is gone.

    python -P episodes/mcp_pipe.py NAME COMMAND ...

A program of its own with nothing but the standard library, because the `mcp` package reads a line
of any length into memory. What the server writes to stderr is not passed on, but for its last lines
when it ends by itself. This process leads the group that the server and its children belong to.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import deque
from threading import Thread
from typing import IO

MOST_LINE = 4 * 2**20  # bytes of one message
MOST_BYTES = 64 * 2**20  # that come without a request between them
LAST_LINES = 5
LONGEST = 300  # bytes shown of each
END_SECONDS = 1.0  # for a server whose stdin was closed


class Pipe:
    """One server and its three streams."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        self.left = MOST_BYTES
        self.closing = False  # the client is gone
        self.last: deque[bytes] = deque(maxlen=LAST_LINES)
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.server = subprocess.Popen(command, **streams)  # type: ignore[call-overload]

    def run(self) -> int:
        """Pass on until one side ends; return the server's exit code."""
        errors = Thread(target=self._remember, daemon=True)
        for thread in (Thread(target=self._ask, daemon=True), errors):
            thread.start()
        while line := self.server.stdout.readline(MOST_LINE + 1):
            self.left -= len(line)
            if len(line) > MOST_LINE or self.left < 0:
                self._say(
                    f"ended, since it sent over {MOST_LINE if self.left > 0 else MOST_BYTES} bytes"
                )
                self._end()
            _write(1, line)
        code = self.server.wait()
        errors.join(END_SECONDS)
        if self.closing and code == 0:
            return code
        self._say(f"ended with code {code}")
        for said in self.last:
            self._say(said.decode("utf-8", "replace").rstrip())
        return code

    def _ask(self) -> None:
        """Pass requests on; when the client is gone, end the server."""
        stdin: IO[bytes] = self.server.stdin
        try:
            while read := os.read(0, 65_536):
                self.left = MOST_BYTES
                stdin.write(read)
                stdin.flush()
            self.closing = True
            stdin.close()
        except OSError:
            pass  # the server reads no more
        try:
            self.server.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._end()

    def _remember(self) -> None:
        while line := self.server.stderr.readline(LONGEST):
            self.last.append(line)

    def _say(self, text: str) -> None:
        print(f"MCP server {self.name}: {text}", file=sys.stderr, flush=True)

    def _end(self) -> None:
        os.killpg(0, signal.SIGKILL)


def _write(number: int, data: bytes) -> None:
    while data:
        data = data[os.write(number, data) :]


def main() -> int:
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)  # so that its end reaches the server's children, and nothing else
    name, *command = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: None)  # unlike SIG_IGN not inherited by the server
    try:
        code = Pipe(name, command).run()
        os.killpg(0, signal.SIGTERM)  # what the server started and left behind
        return code
    except OSError as error:
        print(f"MCP server {name}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
