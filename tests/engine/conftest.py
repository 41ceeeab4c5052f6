"""What tests of the engine share beside `tests/runs.py`.

A commit's CI has five trainings: the SQL agent's `--ci-fast`, one of an agent of words, a resumed
one, one of three processes, and one whose runner is killed. Every other training is `nightly`.
"""

from __future__ import annotations

from http.server import ThreadingHTTPServer
from threading import Thread

import pytest

from tests.runs import Run
from tests.serving import JsonHandler


@pytest.fixture(scope="session")
def smoke(fast_run):
    """The SQL agent's `--ci-fast`."""
    return fast_run("sql")


class MortalJudge(JsonHandler):
    """Gives every answer the same low score while it lives, then refuses."""

    alive = True

    def do_POST(self) -> None:
        self.asked()
        self.answer({"score": 0.25}, 200 if self.alive else 403)


@pytest.fixture(scope="session")
def cold(start):
    """A run without chance, so that all episodes of a group are the same; its judge dies."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), MortalJudge)
    Thread(target=server.serve_forever, daemon=True).start()
    judge = f"http://127.0.0.1:{server.server_port}/score"
    flags = ("--ci-fast", "trainer.test_freq=-1", "trainer.total_training_steps=50")
    run = start(*flags, TEMPERATURE="0.001", REWARD_MODEL_URL=judge, JUDGE_CHECK="0")
    run.wait_for(Run.steps)
    MortalJudge.alive = False
    assert run.wait() == 1, run.output
    server.shutdown()
    server.server_close()
    return run
