"""A runner without processes or requests: its store keeps what it is told, and it takes and sends
nothing by itself.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from agentlightning.types import Attempt, AttemptedRollout

from training.runners.episode_runner import EpisodeRunner


class Store:
    """Keeps what it is told; `known` is what it answers when asked for rollouts."""

    def __init__(self, *known: AttemptedRollout) -> None:
        self.known, self.told = list(known), list[tuple[Any, ...]]()
        self.queue: list[list[AttemptedRollout]] = []

    async def update_attempt(self, rollout: str, attempt: str, **values: Any) -> None:
        self.told.append((rollout, attempt, *values.items()))

    async def update_worker(self, name: str, statistics: dict[str, int]) -> None:
        self.told.append((name, statistics))

    async def query_rollouts(self, **asked: Any) -> list[AttemptedRollout]:
        self.told.append(tuple(asked.items()))
        return self.known

    async def dequeue_many_rollouts(self, limit: int, worker_id: str) -> list[AttemptedRollout]:
        self.told.append((limit, worker_id))
        if not self.queue:
            raise RuntimeError("the test is over")
        return self.queue.pop(0)

    async def get_resources_by_id(self, name: str) -> Any:
        self.told.append((name,))
        return SimpleNamespace(resources={"policy": name}) if name == "r1" else None

    def otlp_traces_endpoint(self) -> str:
        return "http://store/v1/traces"


class Sender:
    """Writes what is sent where the store's words are, so that their order is seen."""

    def __init__(self, told: list[Any]) -> None:
        self.told = told

    async def send(self, endpoint: str, spans: Any) -> None:
        self.told.append((endpoint, spans))


def attempted(name: str, status: str = "running", mode: str = "train") -> AttemptedRollout:
    attempt = Attempt(
        rollout_id=name, attempt_id=f"{name}-1", sequence_id=1, start_time=0.0, status="running"
    )
    values = {"input": {"name": name}, "start_time": 0.0, "status": status, "resources_id": "r1"}
    return AttemptedRollout(rollout_id=name, mode=mode, attempt=attempt, **values)


def runner_of(store: Store, concurrency: int = 10) -> EpisodeRunner:
    """A runner as `iter` prepares it, that takes and sends nothing by itself."""
    runner = EpisodeRunner(concurrency, deadline=30, heartbeat=0.01)
    runner.store, runner.name = store, "me"  # type: ignore[assignment]
    runner._slots, runner._stray, runner._resources = {}, set(), {}
    runner._sender, runner._freed = Sender(store.told), asyncio.Event()  # type: ignore[assignment]
    return runner
