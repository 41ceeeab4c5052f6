"""A chat-completions server with scripted replies, and a small database, for the tests of the SQL agent."""

from __future__ import annotations

import contextlib
import copy
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sql_agent.prompts import COLUMNS


class ScriptedLLM:
    """Gives one scripted reply after the other (the last one again and again) and keeps the requests."""

    def __init__(self) -> None:
        self.replies: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.status = 200
        self.error = "broken on purpose"
        self.delay = 0.0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def script(self, *replies: dict[str, Any]) -> None:
        self.replies = list(replies)

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append(body)
        time.sleep(self.delay)
        if self.status != 200:
            return self.status, {"error": {"message": self.error, "type": "test", "code": self.status}}
        reply = copy.deepcopy(self.replies[min(len(self.requests), len(self.replies)) - 1])
        for tool_call in reply.get("message", {}).get("tool_calls", []):
            tool_call["id"] = f"call-{len(self.requests)}"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choices = [{"index": 0, **reply}] if reply else []
        return 200, {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": choices,
            "usage": usage,
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        llm = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, answer = llm.answer(body)
                data = json.dumps(answer).encode()
                with contextlib.suppress(BrokenPipeError):  # a client that gave up waiting
                    self._send(status, data)

            def _send(self, status: int, data: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: Any) -> None:
                pass

        return Handler


@pytest.fixture
def llm() -> Iterator[ScriptedLLM]:
    scripted = ScriptedLLM()
    yield scripted
    scripted.server.shutdown()
    scripted.server.server_close()


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """A database with both tables and one row in each."""
    path = tmp_path / "small.db"
    connection = sqlite3.connect(path)
    for table, columns in COLUMNS.items():
        connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    connection.execute(
        "INSERT INTO drugs_info (id, med_name, storage) VALUES (1, '朵莎洛片', '密封，20℃以下干燥处保存')"
    )
    connection.execute("INSERT INTO disease (id, disease_name, cause) VALUES (1, '图帕氏病', '受凉')")
    connection.commit()
    connection.close()
    return f"sqlite:///{path}"
