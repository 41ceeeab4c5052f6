"""An LLM server with a set latency, speaking vLLM's protocol: queries, then an answer.

    python -m bench.rollout_sides.standin PORT LATENCY_SECONDS CALLS

The reply to a conversation with fewer than CALLS - 1 tool messages is a query, else an answer. Token ids are made up
the way a real tokenizer's come out: every prompt extends the previous prompt and reply.
"""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import count
from typing import Any

import uvicorn

PROMPT_TOKENS, REPLY_TOKENS, TOOL_TOKENS = 300, 40, 60
QUERY = json.dumps({"sql": "SELECT med_name, indication FROM drugs_info WHERE id = 1"})


class FixedLatencyLlm:
    """ASGI app; one instance serves any number of conversations."""

    def __init__(self, latency: float, calls: int) -> None:
        self.latency, self.calls = latency, calls
        self._numbers = count()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        reply: dict[str, Any] = {}
        if scope["path"].endswith("/chat/completions"):
            await asyncio.sleep(self.latency)
            reply = self.complete(json.loads(body)["messages"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": json.dumps(reply).encode()})

    def complete(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """The completion of a conversation, with token ids."""
        turn = sum(message["role"] == "tool" for message in messages)
        number = next(self._numbers)
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "query_database_by_sql", "arguments": QUERY},
        }
        message: dict[str, Any] = {"role": "assistant", "content": "数据库中没有找到。"}
        if turn < self.calls - 1:
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "token_ids": reply_ids(turn)}
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1,
            "model": "standin",
            "prompt_token_ids": prompt_ids(turn),
            "choices": [choice],
            "usage": {"prompt_tokens": len(prompt_ids(turn)), "completion_tokens": REPLY_TOKENS, "total_tokens": 0},
        }


def reply_ids(turn: int) -> list[int]:
    """What the policy generates in its call number `turn`."""
    return [1000 + turn] * REPLY_TOKENS


def prompt_ids(turn: int) -> list[int]:
    """What call number `turn` is given: the question, then each earlier reply with its tool result."""
    ids = list(range(PROMPT_TOKENS))
    for earlier in range(turn):
        ids += reply_ids(earlier) + [2000 + earlier] * TOOL_TOKENS
    return ids


if __name__ == "__main__":
    app = FixedLatencyLlm(float(sys.argv[2]), int(sys.argv[3]))
    # Connections stay open while another side has its turn.
    uvicorn.run(
        app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", lifespan="off", timeout_keep_alive=600
    )
