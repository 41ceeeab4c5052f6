"""An HTTP client whose requests are answered by litellm in this process: any provider behind the
agent's own endpoint.

    Endpoint(BASE_URL, "anthropic/NAME", http_client=litellm_client())

The agent stays what it is in training (chat completions through the openai client) and litellm
translates; no proxy runs. Keys are those litellm reads from the environment, such as
ANTHROPIC_API_KEY.
"""

from __future__ import annotations

import json

import httpx

from common.llm import load_litellm

BASE_URL = "http://litellm.invalid/v1"  # never connected to
PASSING_STATUS = 503


def providers() -> frozenset[str]:
    """The providers litellm knows: what may stand before the slash of a model name."""
    return frozenset(
        str(getattr(provider, "value", provider)) for provider in load_litellm().provider_list
    )


def litellm_client() -> httpx.AsyncClient:
    """A client that hands chat-completion requests to litellm."""
    return httpx.AsyncClient(transport=_Transport())


class _Transport(httpx.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(await request.aread())
        try:
            reply = await load_litellm().acompletion(
                **body, drop_params=True, num_retries=0, max_retries=0
            )
        except Exception as error:  # as a server would: the openai client retries what may pass and raises the rest
            status = getattr(error, "status_code", None) or PASSING_STATUS
            return httpx.Response(
                int(status), json={"error": {"message": str(error), "type": type(error).__name__}}
            )
        return httpx.Response(200, json=reply.model_dump(mode="json"))
