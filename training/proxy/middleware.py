"""Record every call before the proxy's app, and keep from agents what only training needs."""

import re
import time
from typing import Any

import orjson
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from training.proxy.gate import CallGate, RequestSeeds
from training.proxy.kept_turns import KeptTurns
from training.proxy.recorder import CallRecorder, Taken

CALL = re.compile(r"/rollout/([^/]+)/attempt/([^/]+)((?:/v1)?/chat/completions)")


class RecordingMiddleware:
    """Strip `/rollout/{id}/attempt/{id}` from a path and record what the reply held.

    A reply from which nothing was taken is not recorded. seeds: None for vLLM's own sampling. Plain
    ASGI: BaseHTTPMiddleware costs a task and a queue a request.
    """

    def __init__(
        self, app: ASGIApp, recorder: CallRecorder, gate: CallGate, seeds: RequestSeeds | None
    ) -> None:
        self.app = app
        self.recorder = recorder
        self.gate = gate
        self.seeds = seeds
        self._turns = KeptTurns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def until_shutdown() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown":  # before the event loop ends
                await self.recorder.close()
            return message

        if scope["type"] == "lifespan":
            await self.app(scope, until_shutdown, send)
        elif route := CALL.fullmatch(scope["path"]):
            inner = {**scope, "path": route[3], "raw_path": route[3].encode()}
            for message in await self._recorded(route[1], route[2], inner, receive):
                await send(message)
        else:
            await self.app(scope, receive, send)

    async def _recorded(
        self, rollout_id: str, attempt_id: str, scope: Scope, receive: Receive
    ) -> list[Message]:
        """Return the app's reply once it is complete and recorded."""
        attempt = f"{rollout_id}/{attempt_id}"
        waiting: list[Message] = []  # what the application is given to read
        reply: list[Message] = []

        async def receive_asked() -> Message:
            return waiting.pop() if waiting else await receive()

        async def hold_back(message: Message) -> None:
            reply.append(message)

        async with self.gate:
            started = time.time()
            request = orjson.loads(await Request(scope, receive).body())
            asked = request
            try:
                if self.seeds is not None:
                    asked = self.seeds.add(request)
                asked = self._turns.add(attempt, asked)
            except (AttributeError, KeyError, TypeError, ValueError):
                pass  # no conversation, as vLLM will say
            body = orjson.dumps(asked)
            waiting.append({"type": "http.request", "body": body, "more_body": False})
            MutableHeaders(scope=scope)["content-length"] = str(len(body))
            await self.app(scope, receive_asked, hold_back)
            start, *parts = reply
            if start["status"] != 200:
                return reply
            try:
                completion = orjson.loads(b"".join(part.get("body", b"") for part in parts))
                taken = take(completion)
            except (IndexError, KeyError, TypeError, ValueError):
                return reply  # no completion, which its caller may know how to read
            if taken is not None:
                self.recorder.record(rollout_id, attempt_id, taken, started)
                self._turns.remember(attempt, request, completion["choices"][0], taken)
        body = orjson.dumps(completion)
        MutableHeaders(scope=start)["content-length"] = str(len(body))
        return [start, {"type": "http.response.body", "body": body}]


def take(completion: dict[str, Any]) -> Taken | None:
    """Remove what vLLM wrote about tokens from a completion, wherever litellm put it."""
    choice = completion["choices"][0]
    beside = choice if "token_ids" in choice else choice.get("provider_specific_fields") or {}
    prompt_ids = completion.pop("prompt_token_ids", None)
    response_ids = beside.pop("token_ids", None)
    found = (choice.pop("logprobs", None) or {}).get("content")
    if not prompt_ids or not response_ids:
        return None
    log_probs = [float(token["logprob"]) for token in found] if found else None
    return Taken(str(completion["id"]), prompt_ids, response_ids, log_probs)
