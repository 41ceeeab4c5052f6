"""The policy of an episode as a section of the YAML names it: OpenAI, Azure, vLLM, or any name of
litellm.

    model = Model({"model_type": "vLLM", "model_name": "NAME", "port": 8000}, n_retry=3, retry_delay=10)
    policy = ModelPolicy(model, max_turns=15)

429, 5xx and time-outs are tried again with growing random waits, a pause that the endpoint asks for
holds for all episodes, and both are bounded (common/llm_retry.py). Keys come from the environment
and stand in no message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from common.llm_endpoint import LLMEndpoint
from common.llm_error import LLMError
from common.llm_retry import RateLimit, persist
from episodes.episode import Message, ToolSpec
from episodes.outcomes import EpisodeError, PolicyStop
from episodes.policy import CONTEXT_OVERFLOW

# Seconds of one request, and of one reply with all its retries
TIMEOUT = 300.0
BUDGET = 900.0
THINKERS = re.compile(r"(^|/)(o\d|gpt-5)")  # models of OpenAI that take no temperature


class Model:
    """One endpoint for all episodes of a run, with its connections, its pauses and its sampling."""

    def __init__(
        self, section: Mapping[str, Any], n_retry: int = 3, retry_delay: float = 10.0
    ) -> None:
        self.section = section
        self.attempts = n_retry + 1
        self.longest_wait = retry_delay
        self.endpoint = endpoint_of(section)
        self.rate = RateLimit()
        limits = {
            "max_tokens": section.get("max_new_tokens"),
            "temperature": section.get("temperature"),
        }
        if THINKERS.search(self.endpoint.model):
            limits = {"max_completion_tokens": section.get("max_new_tokens")}
        self.body = {name: value for name, value in limits.items() if value is not None}

    async def complete(self, messages: Sequence[Message]) -> tuple[str, int, int]:
        """Return a reply, and the tokens of prompt and reply. Raises PolicyStop, EpisodeError."""

        async def attempt() -> tuple[str, tuple[int, int, float | None]]:
            return await self.endpoint.complete({**self.body, "messages": list(messages)})

        how: dict[str, Any] = {
            "attempts": self.attempts,
            "timeout": BUDGET,
            "longest_wait": self.longest_wait,
        }
        try:
            text, (read, written, _) = await persist(
                attempt, self.endpoint.model, rate=self.rate, **how
            )
        except LLMError as error:
            if error.cause == "refused" and CONTEXT_OVERFLOW.search(str(error)):
                raise PolicyStop("context_overflow") from None
            cause = "endpoint_unreachable" if error.cause == "connection" else "endpoint_error"
            raise EpisodeError(cause, str(error)) from None
        return text, read, written


def endpoint_of(section: Mapping[str, Any]) -> LLMEndpoint:
    """Return the endpoint of a section's model, by litellm's name of it."""
    kind = section["model_type"]
    name = str(section.get("model_name"))
    base = section.get("base_url")
    if kind == "Azure":
        # litellm's name of the variable
        os.environ.setdefault("AZURE_API_VERSION", os.environ["API_VERSION"])
        where = os.environ["AZURE_OPENAI_ENDPOINT"], os.environ["AZURE_OPENAI_API_KEY"]
        return LLMEndpoint(f"azure/{section['deployment_name']}", *where, TIMEOUT)
    if kind == "vLLM":
        address = base or f"http://127.0.0.1:{section.get('port', 8000)}/v1"
        return LLMEndpoint(
            f"openai/{name}", address, os.environ.get("VLLM_API_KEY", "none"), TIMEOUT
        )
    if kind == "OpenAI":
        return LLMEndpoint(
            f"openai/{name}",
            base or os.environ.get("OPENAI_BASE_URL"),
            os.environ["OPENAI_API_KEY"],
            TIMEOUT,
        )
    return LLMEndpoint(name, base, None, TIMEOUT)


class ModelPolicy:
    """The policy of one episode (`episodes.agent.Policy`); `max_turns` replies are its budget."""

    def __init__(self, model: Model, max_turns: int) -> None:
        self.model = model
        self.max_turns = max_turns
        self.turns = self.prompt_tokens = self.completion_tokens = 0
        self.finish_reason: str | None = None

    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        if self.turns >= self.max_turns:
            raise PolicyStop("max_turns")
        text, read, written = await self.model.complete(messages)
        self.turns += 1
        self.prompt_tokens += read
        self.completion_tokens += written
        return {"role": "assistant", "content": text}
