"""What tests of the engine share beside `tests/runs.py`.

A commit's CI has five trainings: the SQL agent's `--ci-fast`, one of an agent of words, a resumed
one, one of three processes, and one whose runner is killed. Every other training is `nightly`.
"""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.runs import Run


@pytest.fixture(scope="session")
def smoke(fast_run: Callable[[str], Run]) -> Run:
    """The SQL agent's `--ci-fast`."""
    return fast_run("sql")


class MortalJudge(BaseHTTPRequestHandler):
    """Gives every answer the same low score while it lives, then refuses."""

    alive = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"score": 0.25}'
        self.send_response(200 if self.alive else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="session")
def cold(start: Callable[..., Run]) -> Run:
    """A run without chance, so that all episodes of a group are the same; its judge dies."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), MortalJudge)
    Thread(target=server.serve_forever, daemon=True).start()
    judge = f"http://127.0.0.1:{server.server_port}/score"
    flags = (
        "--ci-fast",
        "trainer.test_freq=-1",
        "trainer.total_training_steps=50",
    )
    run = start(*flags, TEMPERATURE="0.001", REWARD_MODEL_URL=judge, JUDGE_CHECK="0")
    run.wait_for(Run.steps)
    MortalJudge.alive = False
    assert run.wait() == 1, run.output
    server.shutdown()
    server.server_close()
    return run
