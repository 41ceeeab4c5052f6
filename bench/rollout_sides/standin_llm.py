"""An LLM server with a set latency, speaking vLLM's protocol: queries, then an answer.

The reply to a conversation with fewer than `calls` - 1 tool messages is a query. Token ids are
invented, but every prompt extends the previous prompt and reply.
"""

import asyncio
import json
from itertools import count
from typing import Any

PROMPT_TOKENS = 300
REPLY_TOKENS = 40
TOOL_TOKENS = 60
QUERY = json.dumps({"sql": "SELECT med_name, indication FROM drugs_info WHERE id = 1"})
ANSWER = "数据库中没有找到。"


def serve(port: int, latency: float, calls: int) -> None:
    """Serve until stopped. `latency` is in seconds."""
    import uvicorn

    app = FixedLatencyLlm(latency, calls)
    # Connections stay open while another side has its turn.
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        log_level="warning",
        lifespan="off",
        timeout_keep_alive=600,
    )


class FixedLatencyLlm:
    """An ASGI app. One instance serves any number of conversations."""

    def __init__(self, latency: float, calls: int) -> None:
        self.latency = latency
        self.calls = calls
        self._numbers = count()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        reply: dict[str, Any] = {}
        if scope["path"].endswith("/chat/completions"):
            await asyncio.sleep(self.latency)
            reply = self.complete(json.loads(body)["messages"])
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"application/json")],
            }
        )
        await send({"type": "http.response.body", "body": json.dumps(reply).encode()})

    def complete(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        turn = sum(message["role"] == "tool" for message in messages)
        number = next(self._numbers)
        prompt = list(range(PROMPT_TOKENS))
        for earlier in range(turn):
            prompt += _reply_ids(earlier) + [2000 + earlier] * TOOL_TOKENS
        message: dict[str, Any] = {"role": "assistant", "content": ANSWER}
        if turn < self.calls - 1:
            function = {"name": "query_database_by_sql", "arguments": QUERY}
            call = {"id": f"call_{number}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "stop",
            "token_ids": _reply_ids(turn),
        }
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1,
            "model": "standin",
            "prompt_token_ids": prompt,
            "choices": [choice],
            "usage": {
                "prompt_tokens": len(prompt),
                "completion_tokens": REPLY_TOKENS,
                "total_tokens": 0,
            },
        }


def _reply_ids(turn: int) -> list[int]:
    return [1000 + turn] * REPLY_TOKENS
