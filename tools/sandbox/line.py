"""The line to an episode's supervisor: JSON messages over a non-blocking socket."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

from tools.sandbox.inside.frames import HEADER


async def readable(line: socket.socket) -> None:
    """Wait until there is something to read."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(line, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(line)


async def receive(line: socket.socket) -> dict[str, Any]:
    """Return the next message of a supervisor. Raises EOFError if it has ended."""
    (size,) = HEADER.unpack(await exactly(line, HEADER.size))
    return json.loads(await exactly(line, size))


async def exactly(line: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = await asyncio.get_running_loop().sock_recv(line, size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
