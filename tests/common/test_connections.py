"""Connections that send no request, or only a part of one, at a server with real sockets."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
import uvicorn

from common import connections
from common.access import Guard, bearer
from common.connections import Server

TOKEN = "s3cret"
NOTHING = b""
HEADERS = b"POST /x HTTP/1.1\r\nhost: x\r\n"
BODY = HEADERS + b"content-length: 1000\r\n\r\nhalf"
ALLOWED_BODY = HEADERS + f"authorization: Bearer {TOKEN}\r\n".encode() + BODY[len(HEADERS) :]
WHOLE = ALLOWED_BODY.replace(b"1000", b"4")
HALVES = {"nothing": NOTHING, "headers": HEADERS, "body": BODY, "allowed body": ALLOWED_BODY}


async def app(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"in"})


@contextmanager
def serving(
    token: str | None = TOKEN, loop: Any = "asyncio", inner: Any = app, **limits: Any
) -> Iterator[int]:
    """The port of a server, in a thread."""
    guard = Guard(inner, token, 10_000)
    config = uvicorn.Config(guard, log_level="warning", lifespan="off", loop=loop, **limits)
    server = Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield port
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


def opened(stack: ExitStack, port: int, said: bytes = HEADERS) -> socket.socket:
    one = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
    one.sendall(said)
    return one


def answer(one: socket.socket) -> bytes:
    """All that comes until the other side ends it."""
    parts = []
    try:
        while part := one.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def allowed(one: socket.socket) -> bool:
    """Whether the next answer, of which nothing stays behind, is the app's."""
    got = b""
    while part := one.recv(65536):
        got += part
        if got.endswith(b"0\r\n\r\n"):
            break
    return got.startswith(b"HTTP/1.1 200") and b"in" in got


def client(port: int) -> httpx.Client:
    return httpx.Client(
        base_url=f"http://127.0.0.1:{port}", headers=bearer(TOKEN), trust_env=False, timeout=None
    )


def let_in(asking: httpx.Client) -> bool:
    return asking.post("/x", content=b"{}").text == "in"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that are over at once."""
    for name in ("HEADER_SECONDS", "BODY_SECONDS", "SECOND_LOOK"):
        monkeypatch.setattr(connections, name, 0.05)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("said", HALVES.values(), ids=HALVES)
def test_half_a_request_is_dropped_after_its_time(said: bytes) -> None:
    with serving(loop="uvloop") as port, ExitStack() as stack, client(port) as honest:
        half = [opened(stack, port, said) for _ in range(20)]
        assert let_in(honest)
        for one in half:
            assert b"200" not in answer(one)
        assert let_in(honest)


@pytest.mark.usefixtures("hasty")
def test_bytes_that_trickle_do_not_make_it_longer() -> None:
    with serving() as port, ExitStack() as stack:
        one = opened(stack, port)
        try:
            while True:
                one.sendall(b"x-more: y\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass


@pytest.mark.parametrize(("said", "token"), [(NOTHING, TOKEN), (HEADERS, None), (BODY, TOKEN)])
def test_no_more_than_the_bound_wait(
    said: bytes, token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest are dropped, no time limit needed; a bound of all connections is not reached."""
    monkeypatch.setattr(connections, "MOST_WAITING", 10)
    with serving(token, limit_concurrency=20) as port, ExitStack() as stack:
        half = [opened(stack, port, said) for _ in range(100)]
        for one in half[:85]:
            assert b"200" not in answer(one)
        with client(port) as honest:
            assert let_in(honest)


def test_who_has_shown_the_token_is_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_WAITING", 5)
    with serving(timeout_keep_alive=1000) as port, ExitStack() as stack:
        runners = [opened(stack, port, WHOLE) for _ in range(4)]
        for one in runners:
            assert allowed(one)
        for one in [opened(stack, port) for _ in range(50)][:45]:
            answer(one)
        for one in runners:
            one.sendall(WHOLE)
            assert allowed(one)


def test_who_is_being_answered_is_not_dropped_where_no_token_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MOST_WAITING", 5)
    begun, released = threading.Event(), threading.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        await asyncio.to_thread(released.wait)
        await app(scope, receive, send)

    with serving(None, inner=slow) as port, ExitStack() as stack:
        stack.callback(released.set)
        visitor = opened(stack, port, WHOLE)
        begun.wait()
        for one in [opened(stack, port) for _ in range(50)][:45]:
            answer(one)
        released.set()
        assert allowed(visitor)
