"""An agent served to a test's own port, with a scripted endpoint as its model."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import uvicorn

from common.settings import Settings
from episodes import registry
from episodes.agent import Agent
from episodes.policy import Endpoint
from evaluation.endpoint import build
from evaluation.serve import NAMES
from evaluation.visits import Host

SETTINGS = Settings.model_construct()


@contextmanager
def served(
    which: str | Agent, base_url: str, token: str | None = None, at_once: int = 64, **changes: Any
) -> Iterator[tuple[str, Host]]:
    """The address of a served agent; `changes` are settings."""
    agent = registry.get(which) if isinstance(which, str) else which
    settings = SETTINGS.model_copy(update={"max_turns": 4, **changes})
    rows = agent.rows(agent.splits["test"])[:20]
    tasks = {str(row["id"]): agent.task(row, settings) for row in rows}
    with closing(agent.open(settings, {}, evaluating=True)) as environment:
        places = asyncio.Semaphore(at_once)
        host = Host(agent, environment, Endpoint(base_url, "m"), settings, tasks, places)
        listener = socket.create_server(("127.0.0.1", 0))
        app = build(host, "runs/NAME", token, NAMES)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", host
        finally:
            server.should_exit = server.force_exit = True
            thread.join()
            listener.close()
