"""Whole chat replies of one model, tool calls included, asked for again where that can help.

    model = ChatModel(LLMEndpoint("anthropic/NAME", None, None, 300.0), attempts=3, budget=900.0)
    reply = await model.reply({"messages": [...], "tools": [...]})  # OpenAI's JSON of a completion

429, 5xx and time-outs are tried again with growing random waits; a pause that the endpoint asks for
holds for all who share the model (common/llm_retry.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from common.llm_endpoint import Body, LLMEndpoint, load_litellm
from common.llm_retry import LONGEST_WAIT, RateLimit, persist


@dataclass
class ChatModel:
    """One endpoint for all episodes of a run. `budget` is in seconds, of one reply with all its
    attempts. translated: litellm adapts every request to its model, and drops what that does not
    take. pauses_count: a pause that the endpoint asks for is one of the attempts.
    """

    endpoint: LLMEndpoint
    attempts: int
    budget: float
    longest_wait: float = LONGEST_WAIT
    translated: bool = False
    pauses_count: bool = False
    rate: RateLimit = field(default_factory=RateLimit)

    async def reply(self, body: Body) -> dict[str, Any]:
        """Return the reply to OpenAI's `body` (without `model`). Raises LLMError."""
        load_litellm()  # the import takes seconds once, which must not count against the budget
        return await persist(
            lambda: self.endpoint.reply(body, self.translated),
            self.endpoint.model,
            attempts=self.attempts,
            timeout=self.budget,
            rate=self.rate,
            longest_wait=self.longest_wait,
            pauses_count=self.pauses_count,
        )
