"""The policy's endpoint as a section of the YAML names it: OpenAI, Azure, vLLM, or any name of
litellm.

    endpoint = policy_endpoint({"model_type": "vLLM", "model_name": "NAME", "port": 8000}, n_retry=3, retry_delay=10)
    policy = ChatPolicy(endpoint, max_turns=15)

Keys come from the environment and stand in no message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from common.llm_chat import ChatModel
from common.llm_endpoint import LLMEndpoint
from episodes.policy import Endpoint

# Seconds of one request, and of one reply with all its retries
TIMEOUT = 300.0
BUDGET = 900.0
THINKERS = re.compile(r"(^|/)(o\d|gpt-5)")  # models of OpenAI that take no temperature


def policy_endpoint(
    section: Mapping[str, Any], n_retry: int = 3, retry_delay: float = 10.0, replies: int = 1
) -> Endpoint:
    """Return where the policy of a section answers and how it is sampled: one for all episodes of a
    run, with its connections and its pauses. A reply is asked for `replies` times, each with
    `n_retry` further tries.
    """
    where = endpoint_of(section)
    tokens = section.get("max_new_tokens")
    chat = ChatModel(where, (n_retry + 1) * max(1, replies), BUDGET, retry_delay)
    how: dict[str, Any] = {"temperature": section.get("temperature"), "max_tokens": tokens}
    if THINKERS.search(where.model):
        limit = {} if tokens is None else {"max_completion_tokens": tokens}
        how = {"temperature": None, "extra": limit}
    return Endpoint(where.base_url or "", where.model, top_p=None, chat_model=chat, **how)


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
