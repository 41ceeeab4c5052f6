"""Stand-in servers of the standard library: what they answer with, and running one for a test."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer
from typing import Any


class JsonHandler(BaseHTTPRequestHandler):
    """A handler that reads JSON, answers with JSON or with bytes, and logs nothing."""

    def asked(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, reply: Any, status: int = 200, **headers: str) -> None:
        """`headers` are named with _ for -."""
        data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.send_response(status)
        named = {"Content_Type": "application/json", "Content_Length": str(len(data))}
        for name, value in (named | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def serving(server: BaseServer) -> Iterator[None]:
    """Serve in a thread while the block runs, then close the port."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
