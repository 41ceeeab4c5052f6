"""Limit how long and how many connections may wait at a server without sending a request.

uvicorn waits forever and takes all connections: 400 half-open ones use up a process's files. Here a
connection has HEADER_SECONDS for its first headers and BODY_SECONDS, and one more for each SLOWEST
bytes, for its request. If more than MOST_WAITING wait, the longest waiting one of the busiest
address is dropped. Runners share an address. They have shown the token and are never dropped.
"""

import asyncio
import logging
import os
import resource
import socket
from collections import Counter
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from common.access import LET_IN

NAME = f"{__name__}:Connection"
HEADER_SECONDS = 20.0  # clients send a request at once; a paused or busy one is given some time
BODY_SECONDS = 60.0
SLOWEST = 100_000  # bytes a second of a large body
SECOND_LOOK = 1.0  # seconds in which a server that was itself held up reads what has come
# 500 episodes that open their connections in one moment are let through. The served agent answers
# 503 from 1,024 connections on, of which half stay for visitors who are being answered.
MOST_WAITING = 512
FILES, _ = resource.getrlimit(resource.RLIMIT_NOFILE)  # as many as this process may open
if FILES != resource.RLIM_INFINITY:
    MOST_WAITING = min(MOST_WAITING, FILES // 2)
AT_ONCE = 32  # connections taken before the first of them is looked at; asyncio takes a backlog
BACKLOG = 2048  # connections that the kernel keeps meanwhile, uvicorn's own number

_Protocol: Any = AutoHTTPProtocol


class Connection(_Protocol):
    """uvicorn's connection, dropped where its request does not come or too many wait."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.host = self.client[0] if self.client else ""
        self.known = False  # whether it has shown the token
        self.reading = True
        self.since = self.loop.time()
        self.received = 0
        self.overdue = False
        self.timer = self.loop.call_later(HEADER_SECONDS, self._look)
        make_room(self.connections)

    def data_received(self, data: bytes) -> None:
        if not self.reading:
            self.reading = True
            self.since = self.loop.time()
            self.received = 0
        self.received += len(data)
        super().data_received(data)
        self.reading = self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def on_response_complete(self) -> None:
        self.known = self.known or bool(self.cycle.scope["state"].get(LET_IN))
        super().on_response_complete()

    def connection_lost(self, error: Exception | None) -> None:
        self.timer.cancel()
        super().connection_lost(error)

    @property
    def waits(self) -> bool:
        """Whether it has not shown the token and is not being answered."""
        answering = self.cycle is not None and not self.cycle.response_complete
        return not self.known and not (answering and LET_IN in self.cycle.scope["state"])

    def _look(self) -> None:
        left = HEADER_SECONDS  # between requests, for the next one's headers
        if self.reading:
            in_body = self.cycle is not None and not self.cycle.response_complete
            limit = BODY_SECONDS + self.received / SLOWEST if in_body else HEADER_SECONDS
            left = self.since + limit - self.loop.time()
        if left <= 0 and self.overdue:
            self.transport.abort()
            return
        self.overdue = left <= 0
        self.timer = self.loop.call_later(SECOND_LOOK if self.overdue else left, self._look)


def make_room(connections: set[Any]) -> None:
    """Drop the longest waiting connection of the address that has the most, if too many wait."""
    # The usual case, in which a new connection costs next to nothing
    if len(connections) <= MOST_WAITING:
        return
    waiting = [one for one in connections if isinstance(one, Connection) and one.waits]
    if len(waiting) <= MOST_WAITING:
        return
    host = Counter(one.host for one in waiting).most_common(1)[0][0]
    oldest = min((one for one in waiting if one.host == host), key=lambda one: one.since)
    connections.discard(oldest)  # counted no more, although its end is only noted later
    oldest.transport.abort()


class Server(uvicorn.Server):
    """uvicorn's server whose connections are bounded. While it lacks files it takes no new ones."""

    def __init__(self, config: uvicorn.Config) -> None:
        config.http = Connection
        config.ws = "none"  # nothing here speaks by web sockets
        config.backlog = AT_ONCE
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # Its warnings are about requests, of which strangers can send any number
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        await super().startup(sockets)
        for server in self.servers:
            for listener in server.sockets:
                with socket.socket(fileno=os.dup(listener.fileno())) as same:
                    same.listen(BACKLOG)


def bound_launcher(launcher: Any) -> None:
    """Let a PythonServerLauncher of agent-lightning, which takes no server, make a `Server`."""
    create = launcher._create_uvicorn_server
    launcher._create_uvicorn_server = lambda: Server(create().config)
