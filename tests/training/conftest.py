"""A toy agent and real stores, for tests of what plays and hands over rollouts."""

import asyncio
import itertools
import os
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from functools import cache
from typing import Any

import agentlightning as agl
import pytest
from agentlightning.types import EnqueueRolloutRequest, RolloutConfig

from training.runners.episode_runner import EpisodeRunner
from training.setup import verl_config
from training.store.live_store import RunStore, make_server
from training.store.store_client import StoreClient

HOST = "127.0.0.1"
_numbers = itertools.count(os.getpid() * 997)


def own_port() -> int:
    """Return a free port that stays free: each process of tests has a range of its own."""
    while True:
        port = 20_000 + next(_numbers) % 10_000
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port


verl_s_defaults = cache(verl_config._verl_defaults)


@pytest.fixture(autouse=True)
def composed_once(monkeypatch):
    """Read verl's files once: each time takes longer than all that a test does with them."""
    monkeypatch.setattr(verl_config, "_verl_defaults", lambda: deepcopy(verl_s_defaults()))


class ToyAgent(agl.LitAgent[dict[str, Any]]):
    """Does what its task says, then emits its name; it blocks until `released` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.most = 0
        self.released = threading.Event()

    @property
    def playing(self) -> int:
        return len(self.names)

    async def training_rollout_async(self, task: Any, resources: Any, rollout: Any) -> float | None:
        self.names.append(task["name"])
        self.most = max(self.most, self.playing)
        try:
            await self._play(task, rollout)
        finally:
            self.names.remove(task["name"])
        agl.emit_annotation({"episode": task["name"], "pid": os.getpid()})
        return task.get("reward", 1.0)

    async def _play(self, task: dict[str, Any], rollout: Any) -> None:
        if "first_only" in task and rollout.attempt.sequence_id > 1:
            return
        await asyncio.sleep(task.get("sleep", 0))
        if "block" in task:
            await asyncio.to_thread(self.released.wait)
        if "raise" in task:
            raise RuntimeError("as the task says")
        if "cancel" in task:
            raise asyncio.CancelledError
        while "stubborn" in task and not self.released.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue


@asynccontextmanager
async def served(
    store: RunStore | None = None, port: int | None = None, token: str | None = None
) -> AsyncIterator[StoreClient]:
    """A client of this project's store, served for real."""
    store = store or RunStore()
    server = make_server(store, HOST, port or own_port(), "thread", token)
    await server.start()
    client = StoreClient(server.endpoint, token)
    await client.add_resources({})
    try:
        yield client
    finally:
        await client.close()
        store.closing = True
        await server.stop()


@pytest.fixture
async def store():
    async with served() as client:
        yield client


async def enqueue(store: Any, tasks: list[dict[str, Any]], **rules: Any) -> list[str]:
    """Queue training rollouts of these tasks; returns their ids."""
    usual = {"max_attempts": 3, "retry_condition": ["timeout", "unresponsive"]}
    config = RolloutConfig(**{**usual, **rules})
    requests = [EnqueueRolloutRequest(input=task, mode="train", config=config) for task in tasks]
    return [rollout.rollout_id for rollout in await store.enqueue_many_rollouts(requests)]


@asynccontextmanager
async def running(runner: EpisodeRunner, agent: Any, store: Any) -> AsyncIterator[None]:
    """A runner that plays what this store has, until the block ends."""
    runner.init(agent, hooks=())
    runner.init_worker(0, store)
    task = asyncio.create_task(runner.iter())
    try:
        yield
    finally:
        task.cancel()
        await task
        runner.teardown_worker(0)
        runner.teardown()
