"""A stand-in for an LLM's endpoint: an HTTP server that speaks OpenAI's and Anthropic's forms.

Its replies are made by `answer` from the request; `faults` are played first, one a request.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any

import pytest

from common.llm import retry
from tests.serving import JsonHandler

KEY = "key-canary-0123456789"  # what clients of the tests send; it must appear in no message


@dataclass
class Fault:
    """A reply: a completion with this text, else a status with headers and a body."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: str = f'{{"error": {{"message": "down, {KEY}"}}}}'
    text: str | None = None


def waits_at_once(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The longest that each wait between two tries might have been; none is waited for."""
    waits: list[float] = []

    def at_once(shortest: float, longest: float) -> float:
        waits.append(longest)
        return 0.0

    monkeypatch.setattr(retry.random, "uniform", at_once)
    return waits


class LLMServer(ThreadingHTTPServer):
    """`requests` are the bodies received, `times` when; `answer` makes a text from a body."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer: Callable[[dict[str, Any]], str] = lambda body: "{}"
        self.faults: list[Fault] = []
        self.refuses: Callable[[dict[str, Any]], str | None] = lambda body: None
        self.refuses_schemas = False
        self.delay = 0.0
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.answered = 0
        self.busy = self.busiest = 0
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that gave up waiting, or were killed, are expected."""

    def reply_to(self, body: dict[str, Any]) -> Fault:
        """The next fault, else a completion."""
        with self.lock:
            if self.faults:
                return self.faults.pop(0)
        if refusal := self.refuses(body):
            return Fault(400, body=json.dumps({"error": {"message": refusal}}))
        if self.refuses_schemas and body.get("response_format", {}).get("type") == "json_schema":
            message = "response_format of type json_schema is unavailable"
            return Fault(400, body=json.dumps({"error": {"message": message}}))
        return Fault(200, text=self.answer(body))


class _Handler(JsonHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, LLMServer)
        body = self.asked()
        with server.lock:
            server.requests.append(body)
            server.keys.add(self.headers["Authorization"])
            server.busy += 1
            server.busiest = max(server.busiest, server.busy)
        try:
            if self.path not in FORMS:
                self._send(Fault(404, body='{"error": {"message": "no such page"}}'))
                return
            reply = server.reply_to(body)
            time.sleep(server.delay)
            self._send(reply)
            with server.lock:
                server.answered += 1
        finally:
            with server.lock:
                server.busy -= 1

    def _send(self, reply: Fault) -> None:
        text = FORMS[self.path](reply.text) if reply.text is not None else reply.body
        self.answer(text.encode(), 200 if reply.text is not None else reply.status, **reply.headers)


def completion(text: str, chat: bool = True) -> str:
    """OpenAI's completion with this text, 10 prompt tokens and 5 of completion."""
    said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    choice = {"index": 0, **said, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    head = {"id": "x", "object": "chat.completion", "created": 1, "model": "stand-in"}
    return json.dumps(head | {"choices": [choice], "usage": usage})


def replying(finish: str = "stop", **message: Any) -> Fault:
    """A completion whose message and ending are these."""
    reply = json.loads(completion(""))
    reply["choices"][0]["message"] |= message
    reply["choices"][0]["finish_reason"] = finish
    return Fault(200, body=json.dumps(reply, ensure_ascii=False))


def message(text: str) -> str:
    """Anthropic's reply with this text."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    said = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": usage}
    return json.dumps({"id": "x", "type": "message", "role": "assistant", "model": "m", **said})


FORMS = {
    "/v1/chat/completions": completion,
    "/v1/completions": lambda text: completion(text, chat=False),
    "/v1/messages": message,
}
