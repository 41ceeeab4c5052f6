"""The default endpoint before vLLM: the LLM proxy's contract without litellm.

It lacks litellm's retries, limits and keys, and its reading of a request's parameters.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from common.access import bearer, error_of
from training.proxy.recorder import ASK_FOR_LOG_PROBS

HEALTH = "/health/liveliness"
COMPLETIONS = "/v1/chat/completions"


def direct_app(
    servers: dict[str, str], model: str, log_probs: bool, token: str | None
) -> Starlette:
    """Return an app that sends completions to the server of their model name, asking for token ids.

    servers: base URLs by model name ("policy-0"). model: the name that vLLM knows.
    """
    told: dict[str, Any] = {"model": model, "return_token_ids": True}
    told |= ASK_FOR_LOG_PROBS if log_probs else {}

    @asynccontextmanager
    async def connected(app: Starlette) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(
            headers={"content-type": "application/json", **bearer(token)},
            connector=aiohttp.TCPConnector(limit=0),  # runners bound what is in flight
            timeout=aiohttp.ClientTimeout(total=None),
        ) as app.state.session:
            yield

    async def complete(request: Request) -> Response:
        asked = orjson.loads(await request.body())  # an object, or the guard had refused it
        server = servers.get(str(asked.get("model")))
        if server is None:
            seen = f"model {asked.get('model')!r} is not served; known: {', '.join(servers)}"
            return _json(error_of(seen), 404)
        url = server + COMPLETIONS
        body = orjson.dumps({**asked, **told})
        try:
            async with request.app.state.session.post(url, data=body) as reply:
                return _json(await reply.read(), reply.status)
        except aiohttp.ClientError as error:
            seen = f"vLLM at {url} does not answer: {type(error).__name__} {error}"
            return _json(error_of(seen), 502)

    routes = [
        Route(HEALTH, _alive),
        Route(COMPLETIONS, complete, methods=["POST"]),
        Route(COMPLETIONS.removeprefix("/v1"), complete, methods=["POST"]),
    ]
    return Starlette(routes=routes, lifespan=connected)


async def _alive(request: Request) -> Response:
    return _json('"alive"')


def _json(body: str | bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")
