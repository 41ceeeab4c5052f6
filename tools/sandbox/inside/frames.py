"""Messages between a supervisor and its caller: four bytes of length, then JSON.

No program holds an end of that line.
"""

import json
import socket
import struct
from typing import Any

HEADER = struct.Struct("!I")


def frame(message: dict[str, Any]) -> bytes:
    """Return the message as bytes."""
    text = json.dumps(message).encode()
    return HEADER.pack(len(text)) + text


READY = frame({})  # what a supervisor says before each question that it can take
MORE = frame({"more": True})  # a deadline went by, and the program, held up, has more time


def receive(line: socket.socket) -> dict[str, Any] | None:
    """Return the next message, or None when the other end was closed."""
    header = line.recv(HEADER.size, socket.MSG_WAITALL)
    if len(header) < HEADER.size:
        return None
    (size,) = HEADER.unpack(header)
    text = line.recv(size, socket.MSG_WAITALL)
    return json.loads(text) if len(text) == size else None
