"""Record every call before the LLM proxy's app, and keep from agents what only training needs."""

import re
import time
from contextvars import ContextVar
from typing import ClassVar

import orjson
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from training.proxy.kept_turns import KeptTurns
from training.proxy.recorder import CallRecorder, Taken

ROUTE = re.compile(r"^/rollout/([^/]+)/attempt/([^/]+)(/.*)?$")

# A list for each call, empty if a reply has no token ids
TAKEN: ContextVar[list[Taken]] = ContextVar("TAKEN")


def take_from_body(body: bytes) -> bytes:
    """Move what vLLM wrote about tokens from a completion into the call's `TAKEN`."""
    call = TAKEN.get(None)
    if call is None:
        return body
    try:
        reply = orjson.loads(body)
        choice = reply["choices"][0]
        if not reply.get("prompt_token_ids") or not choice.get("token_ids"):
            return body
        log_probs = choice.pop("logprobs", None)
        found = [float(token["logprob"]) for token in log_probs["content"]] if log_probs else None
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
        return body
    call.append(
        Taken(
            str(reply.get("id")),
            reply.pop("prompt_token_ids"),
            choice.pop("token_ids"),
            found or None,
        )
    )
    return orjson.dumps(reply)


class RecordingMiddleware:
    """Strip `/rollout/{id}/attempt/{id}` from a path and record what the reply held.

    A reply from which nothing was taken is not recorded. Plain ASGI: BaseHTTPMiddleware costs a
    task and a queue a request.
    """

    # For agent-lightning, which makes the middleware without arguments
    default: ClassVar[CallRecorder]

    def __init__(self, app: ASGIApp, recorder: CallRecorder | None = None) -> None:
        self.app = app
        self._recorder = recorder
        self._turns = KeptTurns()

    @property
    def recorder(self) -> CallRecorder:
        """The proxy's recorder, looked up late, since litellm's app outlives a proxy."""
        return self._recorder or self.default

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":

            async def until_shutdown() -> Message:
                message = await receive()
                if message["type"] == "lifespan.shutdown":  # before the event loop ends
                    await self.recorder.close()
                return message

            return await self.app(scope, until_shutdown, send)
        route = ROUTE.match(scope["path"]) if scope["type"] == "http" else None
        if route is None:
            return await self.app(scope, receive, send)
        path = route[3] or "/"
        inner: Scope = {**scope, "path": path, "raw_path": path.encode()}
        recorder = self.recorder
        reply: list[Message] = []
        taken: list[Taken] = []
        waiting: list[Message] = []  # what the application is given to read

        async def hold_back(message: Message) -> None:
            reply.append(message)

        async def receive_asked() -> Message:
            return waiting.pop() if waiting else await receive()

        TAKEN.set(taken)
        attempt = f"{route[1]}/{route[2]}"
        async with recorder.gate:
            started = time.time()
            body = await Request(inner, receive).body()
            if recorder.seeds is not None:
                body = recorder.seeds.add(body)
            asked = self._turns.add(attempt, body)
            waiting.append({"type": "http.request", "body": asked, "more_body": False})
            length = (b"content-length", str(len(asked)).encode())
            others = [one for one in scope["headers"] if one[0].lower() != b"content-length"]
            inner["headers"] = [*others, length]
            await self.app(inner, receive_asked, hold_back)
            if taken and reply and reply[0].get("status") == 200:
                recorder.record(route[1], route[2], taken[0], started)
                said = b"".join(message.get("body", b"") for message in reply)
                self._turns.remember(attempt, body, said, taken[0])
        for message in reply:  # complete and recorded
            await send(message)
        return None
