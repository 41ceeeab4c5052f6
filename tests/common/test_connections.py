"""Who is let in, how much of a request is read, and connections that send only a part of one."""

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
from common.access import Guard, bearer, require_token
from common.command import UsageError
from common.connections import Server

TOKEN = "s3cret"
NOTHING = b""
HEADERS = b"POST /x HTTP/1.1\r\nhost: x\r\n"
BODY = HEADERS + b"content-length: 1000\r\n\r\nhalf"
ALLOWED_BODY = HEADERS + f"authorization: Bearer {TOKEN}\r\n".encode() + BODY[len(HEADERS) :]
WHOLE = ALLOWED_BODY.replace(b"1000", b"4")
HALVES = {"nothing": NOTHING, "headers": HEADERS, "body": BODY, "allowed body": ALLOWED_BODY}


async def answered(send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"in"})


async def app(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await answered(send)


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
    how = {"headers": bearer(TOKEN), "trust_env": False, "timeout": None}
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", **how)


def let_in(asking: httpx.Client) -> bool:
    return asking.post("/x", content=b"{}").text == "in"


@pytest.fixture
def hasty(monkeypatch):
    """Limits that are over at once."""
    for name in ("HEADER_SECONDS", "BODY_SECONDS", "SECOND_LOOK"):
        monkeypatch.setattr(connections, name, 0.05)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("said", HALVES.values(), ids=HALVES)
def test_half_a_request_is_dropped_after_its_time(said):
    with serving(loop="uvloop") as port, ExitStack() as stack, client(port) as honest:
        half = [opened(stack, port, said) for _ in range(20)]
        assert let_in(honest)
        for one in half:
            assert b"200" not in answer(one)
        assert let_in(honest)


@pytest.mark.usefixtures("hasty")
def test_bytes_that_trickle_do_not_make_it_longer():
    with serving() as port, ExitStack() as stack:
        one = opened(stack, port)
        try:
            while True:
                one.sendall(b"x-more: y\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass


@pytest.mark.parametrize(("said", "token"), [(NOTHING, TOKEN), (HEADERS, None), (BODY, TOKEN)])
def test_no_more_than_the_bound_wait(said, token, monkeypatch):
    """The oldest are dropped, no time limit needed; a bound of all connections is not reached."""
    monkeypatch.setattr(connections, "MOST_WAITING", 10)
    with serving(token, limit_concurrency=20) as port, ExitStack() as stack:
        half = [opened(stack, port, said) for _ in range(100)]
        for one in half[:85]:
            assert b"200" not in answer(one)
        with client(port) as honest:
            assert let_in(honest)


def test_who_has_shown_the_token_is_not_dropped(monkeypatch):
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


def test_who_is_being_answered_is_not_dropped_where_no_token_is_needed(monkeypatch):
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


class Inner:
    """An app that notes what reaches it."""

    def __init__(self) -> None:
        self.seen: list[tuple[dict[bytes, bytes], bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append((dict(scope["headers"]), (await receive())["body"]))
        await answered(send)


async def ask(
    guard: Guard, body: bytes = b"{}", path: str = "/x", host: str = "10.0.0.1", **headers: str
) -> httpx.Response:
    how = httpx.ASGITransport(guard, client=(host, 1))
    async with httpx.AsyncClient(transport=how, base_url="http://guarded") as client:
        raw = {name: value.encode("latin-1") for name, value in headers.items()}
        return await client.post(path, content=body, headers=raw)


async def test_only_who_has_the_token_gets_in():
    inner = Inner()
    guard = Guard(inner, TOKEN, 100, free=["/health"])
    near = ("Bearer s3creT", "Bearer s3cretx", "Basic s3cret", "Bearer s3cr\xe9t")
    for wrong in ("", "s3cret", "Bearer ", *near):
        refused = await ask(guard, authorization=wrong)
        assert refused.status_code == 401
        assert "AGL_TOKEN" in refused.json()["error"]["message"]
        assert TOKEN not in refused.text
    assert (await ask(guard)).status_code == 401
    assert inner.seen == []
    assert (await ask(guard, path="/health")).text == "in"
    right = bearer(TOKEN)["Authorization"]
    assert (await ask(guard, authorization=right)).text == "in"
    headers, body = inner.seen[-1]
    assert body == b"{}"
    assert b"authorization" not in headers, "the app never sees the token"


async def test_without_a_token_everybody_gets_in_and_the_header_stays():
    inner = Inner()
    assert (await ask(Guard(inner, None, 100), authorization="Bearer other")).text == "in"
    assert inner.seen[0][0][b"authorization"] == b"Bearer other"
    assert bearer(None) == {}


async def test_no_more_than_the_bound_is_read():
    inner = Inner()
    guard = Guard(inner, None, 10)
    assert (await ask(guard, b"x" * 10)).status_code == 200
    refused = await ask(guard, b"x" * 11)
    assert refused.status_code == 413
    assert "over 10 bytes" in refused.json()["error"]["message"]
    assert (await ask(guard, b"\x1f\x8b", **{"content-encoding": "gzip"})).status_code == 415
    assert len(inner.seen) == 1


async def test_no_more_than_so_many_requests_of_an_address_within_a_second(monkeypatch):
    """A wrong token counts, and the right one does not help; nobody else is held up."""
    now = 5.0
    monkeypatch.setattr("common.access.time.monotonic", lambda: now)
    guard = Guard(Inner(), TOKEN, 10, most_per_second=3)
    right = bearer(TOKEN)["Authorization"]
    for word, status in (("", 401), ("wrong", 401), (right, 200), (right, 429)):
        assert (await ask(guard, authorization=word)).status_code == status
    other = await ask(guard, host="10.0.0.2", authorization=right)
    assert other.status_code == 200
    now = 6.0
    assert (await ask(guard, authorization=right)).status_code == 200


async def test_half_a_request_is_not_handed_on():
    inner = Inner()

    async def leave() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    scope = {"type": "http", "method": "POST", "path": "/x", "headers": [], "client": None}
    await Guard(inner, None, 10)(scope, leave, send)
    assert inner.seen == []


def test_a_web_socket_is_a_request_like_others():
    upgrade = (
        HEADERS.replace(b"POST", b"GET") + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n"
    )
    with serving() as port, ExitStack() as stack:
        assert opened(stack, port, upgrade).recv(65536).startswith(b"HTTP/1.1 401")


def test_every_address_but_the_loopback_needs_a_token_and_a_name_is_none():
    for host in ("127.0.0.1", "::1", "localhost"):
        require_token(host, None, "--host")
    for host in ("0.0.0.0", "::", "10.0.0.5"):
        for token in (None, ""):
            with pytest.raises(UsageError, match=r"--host .*AGL_TOKEN"):
                require_token(host, token, "--host")
        require_token(host, TOKEN, "--host")
    with pytest.raises(UsageError, match=r"--host.*here"):
        require_token("here", TOKEN, "--host")
