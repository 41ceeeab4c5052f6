"""Who may ask a server of this project, and how much: the token AGL_TOKEN and bounds on requests."""

import hmac
import ipaddress
import json
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from common.command import UsageError

TOKEN = "AGL_TOKEN"  # the variable that holds it
HEADER = b"authorization"
LET_IN = "let_in"  # in a request's state: True if it showed the token, False if none is needed
# Requests of one address: above what a run's machines send, bench.rollouts included
MOST_PER_SECOND = 5000
MORE_HEADERS = {401: [(b"www-authenticate", b"Bearer")], 429: [(b"retry-after", b"1")]}
ADVICE = "send the server's AGL_TOKEN as Authorization: Bearer TOKEN"


def bearer(token: str | None) -> dict[str, str]:
    """Return the header a client sends, or {} without a token."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def require_token(host: str, token: str | None, setting: str) -> None:
    """Raise UsageError if others can reach the address that `setting` names and no token is set."""
    if not is_loopback(host, setting) and not token:
        raise UsageError(f"{setting} {host}: others can reach it; set AGL_TOKEN, which they send")


def is_loopback(host: str, setting: str) -> bool:
    """Return whether only this machine reaches an address. Raises UsageError: not an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise UsageError(f"{setting} {host!r}: expected an IP address such as 0.0.0.0") from None


@dataclass(eq=False, repr=False)  # the repr would show the secret
class Guard:
    """ASGI middleware that refuses a request before `app` sees it: 429 (too many of one address
    within a second), 401 (token), 404 (not served), 413 (body too long) or 415 (compressed).

    free: paths without a token. serves: whether a method and path are for the app. problem: what
    else is wrong with a path and its body (400). Without a token everybody is let in. The app never
    sees the header.
    """

    app: Any
    token: str | None
    most_bytes: int
    free: Collection[str] = ()
    problem: Callable[[str, bytes], str | None] = lambda path, body: None
    most_per_second: int = MOST_PER_SECOND
    serves: Callable[[str, str], bool] = lambda method, path: True
    second: int = field(default=0, init=False)
    asked: Counter[str] = field(default_factory=Counter, init=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        client = scope.get("client")
        address = client[0] if client else ""
        now = int(time.monotonic())
        if now != self.second:
            self.second = now
            self.asked = Counter()
        self.asked[address] += 1
        if self.asked[address] > self.most_per_second:
            said = f"over {self.most_per_second} requests within a second; ask later"
            return await _refuse(send, 429, said)
        headers = dict(scope["headers"])
        if self.token and scope["path"] not in self.free:
            if not hmac.compare_digest(headers.get(HEADER, b""), f"Bearer {self.token}".encode()):
                return await _refuse(send, 401, ADVICE)
            scope.get("state", {})[LET_IN] = True
            scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != HEADER]}
        if not self.serves(scope["method"], scope["path"]):
            return await _refuse(send, 404, f"{scope['path']} is not served here")
        # A small compressed body may unpack to a huge one
        if headers.get(b"content-encoding", b"identity") != b"identity":
            return await _refuse(send, 415, "send the body uncompressed")
        return await self._checked(scope, receive, send)

    async def _checked(self, scope: Any, receive: Any, send: Any) -> None:
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":  # an incomplete request is dropped
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self.most_bytes:
                return await _refuse(send, 413, f"it has over {self.most_bytes} bytes")
        if found := self.problem(scope["path"], bytes(body)):
            return await _refuse(send, 400, found)
        if not self.token:
            scope.get("state", {})[LET_IN] = False
        read = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def again() -> Any:
            return read.pop() if read else await receive()

        return await self.app(scope, again, send)


def json_of(value: Any) -> str:
    """Return JSON that is readable in any language and has a form in UTF-8."""
    # Half of a surrogate pair has none, and many readers of JSON refuse an escaped one
    return json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()


def error_of(message: str, kind: str = "invalid_request_error") -> str:
    """Return the JSON of an error as OpenAI words it."""
    return json_of({"error": {"message": message, "type": kind, "code": kind}})


async def _refuse(send: Any, status: int, message: str) -> None:
    headers = [(b"content-type", b"application/json"), *MORE_HEADERS.get(status, ())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": error_of(message).encode()})
