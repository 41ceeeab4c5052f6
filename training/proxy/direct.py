"""The default recording endpoint before vLLM: the LLM proxy's contract without litellm.

It lacks litellm's retries, limits and keys, and its reading of a request's parameters.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import orjson
from agentlightning.utils.server_launcher import PythonServerLauncher, PythonServerLauncherArgs
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from common.access import bearer, error_of
from training.proxy.middleware import RecordingMiddleware, take_from_body
from training.proxy.recorder import ASK_FOR_LOG_PROBS, CallRecorder

HEALTH = "/health/liveliness"
COMPLETIONS = "/v1/chat/completions"


class DirectEndpoint:
    """Forward completions to the server of their model name, asking for token ids (an ASGI app).

    servers: base URLs by model name ("policy-0"). model: the name that vLLM knows.
    """

    def __init__(
        self, servers: dict[str, str], model: str, log_probs: bool = False, token: str | None = None
    ) -> None:
        self.servers = servers
        self.headers = {"content-type": "application/json", **bearer(token)}
        self.asked = {
            "model": model,
            "return_token_ids": True,
            **(ASK_FOR_LOG_PROBS if log_probs else {}),
        }
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The guard lets only calls and health checks pass
        if scope["path"] == HEALTH:
            reply = Response('"alive"', media_type="application/json")
        else:
            status, body = await self._complete(await Request(scope, receive).body())
            reply = Response(body, status, media_type="application/json")
        await reply(scope, receive, send)

    async def _complete(self, body: bytes) -> tuple[int, bytes]:
        request = orjson.loads(body)  # an object, or the guard had refused it
        server = self.servers.get(str(request.get("model")))
        if server is None:
            seen = f"model {request.get('model')!r} is not served; known: {', '.join(self.servers)}"
            return 404, error_of(seen).encode()
        if self._session is None:
            unlimited = aiohttp.TCPConnector(limit=0)  # runners bound what is in flight
            self._session = aiohttp.ClientSession(
                connector=unlimited, timeout=aiohttp.ClientTimeout(total=None)
            )
        url = server + COMPLETIONS
        asked = orjson.dumps({**request, **self.asked})
        try:
            async with self._session.post(url, data=asked, headers=self.headers) as reply:
                return reply.status, take_from_body(await reply.read())
        except aiohttp.ClientError as error:
            seen = f"vLLM at {url} does not answer: {type(error).__name__} {error}"
            return 502, error_of(seen).encode()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def direct_proxy(
    endpoint: DirectEndpoint, recorder: CallRecorder, launcher: PythonServerLauncherArgs
) -> PythonServerLauncher:
    """Return the endpoint behind the recording middleware, to be served in a thread."""

    @asynccontextmanager
    async def closing() -> AsyncIterator[None]:
        """Write what is recorded and close the connections when the server ends."""
        yield
        await recorder.close()
        await endpoint.close()

    return PythonServerLauncher(RecordingMiddleware(endpoint, recorder), launcher, closing())
