"""Stands before the LLM proxy's app: records every call as it passes, and keeps from agents what only training needs.

`RecordingMiddleware` strips the rollout from a request's path, takes token ids and log-probabilities from the reply and
hands them to the `CallRecorder`. Used by `training.proxy` (litellm) and `training.direct`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, ClassVar

import orjson

from training.recorder import CallRecorder, RecordedCall

ROUTE = re.compile(r"^/rollout/([^/]+)/attempt/([^/]+)(/.*)?$")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class RecordingMiddleware:
    """Strips `/rollout/{id}/attempt/{id}` from a request's path and records the reply's token ids and their
    log-probabilities on their way out.

    They do not travel on to the agent, which has no use for them. A reply without them (an error, another
    route) passes as it is. Plain ASGI: Starlette's BaseHTTPMiddleware costs a task and a queue a request.
    """

    default: ClassVar[CallRecorder | None] = None  # for agent-lightning, which makes the middleware without arguments

    def __init__(self, app: App, recorder: CallRecorder | None = None) -> None:
        self.app = app
        self._recorder = recorder

    @property
    def recorder(self) -> CallRecorder:
        """Where this middleware records; looked up late, since litellm's app outlives a proxy in the same process."""
        recorder = self._recorder or self.default
        if recorder is None:
            raise RuntimeError("RecordingMiddleware serves calls before it was given a recorder")
        return recorder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, lambda: self._until_shutdown(receive), send)
        route = ROUTE.match(scope["path"]) if scope["type"] == "http" else None
        if route is None:
            return await self.app(scope, receive, send)
        path = route[3] or "/"
        inner: Scope = {**scope, "path": path, "raw_path": path.encode()}
        reply = _HeldReply(send)
        async with self.recorder.gate:
            started = time.time()
            if self.recorder.seeds is not None:
                inner, receive = await _changed(inner, receive, self._with_seed)
            await self.app(inner, receive, reply)
            reply.change(lambda body: self._record(route[1], route[2], started, body))
        await reply.release()
        return None

    async def _until_shutdown(self, receive: Receive) -> Message:
        """Pass the server's messages on; what is recorded is sent before the loop it lives on ends."""
        message = await receive()
        if message["type"] == "lifespan.shutdown":
            await self.recorder.close()
        return message

    def _with_seed(self, body: bytes) -> bytes:
        seeds = self.recorder.seeds
        return body if seeds is None else seeds.add(body, self.recorder.version())

    def _record(self, rollout_id: str, attempt_id: str, started: float, body: bytes) -> bytes:
        """Record the call a successful reply answers; returns the reply without what only the trainer needs."""
        found = take_token_ids(body)
        if found is None:
            return body
        reply, prompt_ids, response_ids = found
        call = RecordedCall(
            rollout_id,
            attempt_id,
            str(reply.get("id")),
            prompt_ids,
            response_ids,
            started,
            time.time(),
            self.recorder.version(),
            take_log_probs(reply),
        )
        self.recorder.record(call)
        return orjson.dumps(reply)


async def _changed(scope: Scope, receive: Receive, change: Callable[[bytes], bytes]) -> tuple[Scope, Receive]:
    """The request with its body put through `change`."""
    body = change(await read_body(receive))
    headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-length"]
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def changed() -> Message:
        return messages.pop() if messages else await receive()

    return {**scope, "headers": [*headers, (b"content-length", str(len(body)).encode())]}, changed


async def read_body(receive: Receive) -> bytes:
    """All of a request's body."""
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


class _HeldReply:
    """An ASGI `send` that holds a reply back until it is complete."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._parts: list[bytes] = []

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._parts.append(message.get("body", b""))

    def change(self, change: Callable[[bytes], bytes]) -> None:
        """Put the body of a successful reply through `change`."""
        if self._start is not None and self._start["status"] == 200:
            self._parts = [change(b"".join(self._parts))]

    async def release(self) -> None:
        """Send the reply, if there was one."""
        if self._start is None:
            return
        body = b"".join(self._parts)
        headers = [(name, value) for name, value in self._start["headers"] if name.lower() != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
        await self._send({**self._start, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def take_token_ids(body: bytes) -> tuple[dict[str, Any], list[int], list[int]] | None:
    """Parse a completion and take its token ids out: (the rest, prompt ids, ids of the first choice).

    None where the body is no completion with both: vLLM writes `token_ids` into the choice, litellm moves them into
    the choice's `provider_specific_fields`.
    """
    try:
        reply = orjson.loads(body)
        choice = reply["choices"][0]
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
        return None
    prompt_ids = reply.pop("prompt_token_ids", None)
    response_ids = choice.pop("token_ids", None) or (choice.get("provider_specific_fields") or {}).pop(
        "token_ids", None
    )
    if not prompt_ids or not response_ids:
        return None
    return reply, prompt_ids, response_ids


def take_log_probs(reply: dict[str, Any]) -> list[float] | None:
    """Take the log-probabilities out of a parsed completion; None where vLLM was not asked for them."""
    found = reply["choices"][0].pop("logprobs", None)
    if not found or not found.get("content"):
        return None
    return [float(token["logprob"]) for token in found["content"]]
