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
    data = bytearray()
    size = HEADER.size
    while len(data) < size:  # MSG_WAITALL gives fewer to a process that was paused meanwhile
        part = line.recv(size - len(data))
        if not part:
            return None
        data += part
        if len(data) == HEADER.size:
            size += HEADER.unpack(data)[0]
    return json.loads(data[HEADER.size :])
