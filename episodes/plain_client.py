"""An openai client that sends a chat completion as it is given.

The stock client walks every message of every request through the types of the whole API to find values it would have
to convert. The agent's requests are plain JSON already, and on its conversations that walk is a third of what a call
costs the runner. Replies, errors and retries stay openai's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from openai import AsyncOpenAI, NotGiven, Omit
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.types.chat import ChatCompletion


class PlainClient(AsyncOpenAI):
    """AsyncOpenAI, but for `chat.completions.create`; what is sent there must be JSON, and nothing is streamed."""

    @cached_property
    def chat(self) -> AsyncChat:
        return _Chat(self)


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> AsyncCompletions:
        return _Completions(self._client)


class _Completions(AsyncCompletions):
    async def create(
        self,
        *,
        extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, object] | None = None,
        extra_body: Mapping[str, object] | None = None,
        **body: Any,
    ) -> ChatCompletion:
        given = {name: value for name, value in body.items() if not isinstance(value, Omit | NotGiven)}
        options = {"headers": extra_headers, "params": extra_query, "extra_json": extra_body}
        return await self._client.post(
            "/chat/completions",
            body=given,
            cast_to=ChatCompletion,
            options={name: value for name, value in options.items() if value is not None},
        )
