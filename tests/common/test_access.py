"""Who is let in, and how much of a request is read; keeps of docs/safety.md, "Strangers"."""

from __future__ import annotations

import json
from typing import Any

import pytest

from common.access import Guard, bearer, require_token
from common.command import UsageError

TOKEN = "s3cret"


class Inner:
    """An app that notes what reaches it."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"] if scope["type"] == "http" else b""
        self.seen.append((scope, body))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"in"})


async def ask(
    guard: Guard,
    *parts: bytes,
    kind: str = "http",
    path: str = "/x",
    client: str = "10.0.0.1",
    **headers: str,
) -> tuple[Any, bytes]:
    """Status and body of the answer to a request that comes in parts; the type of the one message
    of a refused web socket; None where there is no answer.
    """
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    if not any(part == b"<gone>" for part in parts):
        messages.append({"type": "http.request", "body": b"", "more_body": False})
    answer: list[Any] = []

    async def receive() -> Any:
        message = messages.pop(0)
        return {"type": "http.disconnect"} if message["body"] == b"<gone>" else message

    async def send(message: Any) -> None:
        answer.append(message)

    raw = [
        (name.replace("_", "-").encode(), value.encode("latin-1"))
        for name, value in headers.items()
    ]
    await guard({"type": kind, "path": path, "headers": raw, "client": (client, 1)}, receive, send)
    if not answer:
        return None, b""
    return answer[0].get("status", answer[0]["type"]), b"".join(
        message.get("body", b"") for message in answer[1:]
    )


async def test_only_who_has_the_token_gets_in() -> None:
    inner = Inner()
    guard = Guard(inner, TOKEN, 100, free=["/health"])
    for wrong in (
        "",
        "s3cret",
        "Bearer ",
        "Bearer s3creT",
        "Bearer s3cretx",
        "Basic s3cret",
        "Bearer s3cr\xe9t",
    ):
        status, body = await ask(guard, b"{}", authorization=wrong)
        assert status == 401
        assert "AGL_TOKEN" in json.loads(body)["error"]["message"]
        assert TOKEN.encode() not in body
    assert (await ask(guard))[0] == 401
    assert (await ask(guard, kind="websocket"))[0] == "websocket.close"
    assert inner.seen == []
    assert (await ask(guard, path="/health")) == (200, b"in")
    assert (await ask(guard, b"{", b"}", authorization=bearer(TOKEN)["Authorization"])) == (
        200,
        b"in",
    )
    scope, body = inner.seen[-1]
    assert body == b"{}"
    assert scope["headers"] == [], "the app never sees the token"


async def test_without_a_token_everybody_gets_in_and_the_header_stays() -> None:
    inner = Inner()
    assert await ask(Guard(inner, None, 100), b"x", authorization="Bearer other") == (200, b"in")
    assert inner.seen[0][0]["headers"] == [(b"authorization", b"Bearer other")]
    assert bearer(None) == {}


async def test_no_more_than_the_bound_is_read() -> None:
    inner = Inner()
    guard = Guard(inner, None, 10)
    assert (await ask(guard, b"x" * 5, b"x" * 5))[0] == 200
    status, body = await ask(guard, b"x" * 5, b"x" * 6, b"never read")
    assert status == 413
    assert "over 10 bytes" in json.loads(body)["error"]["message"]
    assert (await ask(guard, b"\x1f\x8b", content_encoding="gzip"))[0] == 415
    assert len(inner.seen) == 1


async def test_no_more_than_so_many_requests_of_an_address_within_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrong token counts, and the right one does not help; nobody else is held up."""
    now = 5.0
    monkeypatch.setattr("common.access.time.monotonic", lambda: now)
    guard = Guard(Inner(), TOKEN, 10, most_per_second=3)
    right = bearer(TOKEN)["Authorization"]
    statuses = [
        (await ask(guard, b"x", authorization=word))[0] for word in ("", "wrong", right, right)
    ]
    assert statuses == [401, 401, 200, 429]
    assert (await ask(guard, b"x", client="10.0.0.2", authorization=right))[0] == 200
    now = 6.0
    assert (await ask(guard, b"x", authorization=right))[0] == 200


async def test_half_a_request_is_not_handed_on() -> None:
    inner = Inner()
    assert await ask(Guard(inner, None, 10), b"ha", b"<gone>") == (None, b"")
    assert inner.seen == []


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_the_loopback_address_needs_no_token(host: str) -> None:
    require_token(host, None, "--host")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5"])
def test_any_other_address_needs_one(host: str) -> None:
    with pytest.raises(UsageError, match=r"--host .*AGL_TOKEN"):
        require_token(host, None, "--host")
    with pytest.raises(UsageError):
        require_token(host, "", "--host")
    require_token(host, TOKEN, "--host")


def test_a_name_is_no_address() -> None:
    with pytest.raises(UsageError, match=r"--host.*here"):
        require_token("here", TOKEN, "--host")
