"""A scripted judge server, and no waiting between attempts."""

import pytest

from common.llm import retry
from tests.scoring.judge_servers import Server
from tests.serving import serving


@pytest.fixture
def server():
    server = Server()
    with serving(server):
        yield server


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.0)
