"""A scripted judge server, and no waiting between attempts."""

from __future__ import annotations

import threading

import pytest

from scoring import remote
from tests.scoring.judge_servers import Server


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(remote, "LONGEST_WAIT", 0.0)
