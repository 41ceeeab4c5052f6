"""How runners and trainer learn of news in the store: by requests that stay open."""

import asyncio
import contextlib
import logging
import platform
from typing import Any

import aiohttp
from agentlightning import LightningStore
from agentlightning.types import AttemptedRollout, Rollout, RolloutConfig

from common.access import bearer
from training.store.store_checks import WAITS

logger = logging.getLogger(__name__)

WAIT_SECONDS = 5.0
UNREACHABLE_SECONDS = 0.5
ANSWER_SECONDS = 30.0
# Above the longest limit of an episode: runners end it earlier, at their own deadline.
STORE_MARGIN_SECONDS = 60.0
UNRESPONSIVE_SECONDS = 60.0
MAX_ATTEMPTS = 3


class Handover:
    """Wait for news of one store. Belongs to one event loop."""

    def __init__(self, store: LightningStore) -> None:
        self.store = store
        self._waits = store.otlp_traces_endpoint().replace("/v1/traces", WAITS)
        self._headers = bearer(getattr(store, "token", None))
        self._session: aiohttp.ClientSession | None = None
        self._last_ending = 0

    async def queued(self) -> None:
        """Return when a rollout waits in the queue, at the latest after WAIT_SECONDS."""
        await self._ask("queue", {"seconds": WAIT_SECONDS})

    async def ended(self) -> list[Rollout]:
        """Return what ended since the last call, with its latest attempt; [] after WAIT_SECONDS."""
        answer = await self._ask("ended", {"after": self._last_ending, "seconds": WAIT_SECONDS})
        if answer is None:
            return []
        self._last_ending = answer["last"]
        found: list[Rollout] = []
        for rollout in answer["rollouts"]:
            # One that was cancelled in the queue has no attempt
            kind = AttemptedRollout if "attempt" in rollout else Rollout
            found.append(kind.model_validate(rollout))
        return found

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _ask(self, what: str, body: dict[str, Any]) -> dict[str, Any] | None:
        if self._session is None:
            limit = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
            self._session = aiohttp.ClientSession(timeout=limit, headers=self._headers)
        try:
            async with self._session.post(f"{self._waits}/{what}", json=body) as response:
                response.raise_for_status()
                return dict(await response.json())
        except (aiohttp.ClientError, TimeoutError) as error:
            logger.info("the store at %s does not answer (%s)", self._waits, type(error).__name__)
            await asyncio.sleep(UNREACHABLE_SECONDS)
            return None


def rules_of(episode_timeout: float) -> RolloutConfig:
    """Return when the store has a rollout of this run played again."""
    return RolloutConfig(
        timeout_seconds=episode_timeout + STORE_MARGIN_SECONDS,
        unresponsive_seconds=UNRESPONSIVE_SECONDS,
        max_attempts=MAX_ATTEMPTS,
        retry_condition=["timeout", "unresponsive"],
    )


def worker_name(pid: int) -> str:
    """Return the name in the store of a runner process on this machine."""
    return f"runner-{platform.node()}-{pid}"


async def give_up(store: LightningStore, worker: str) -> int:
    """Mark a worker's rollouts unresponsive, so that others play them. Return how many."""
    abandoned = 0
    for rollout in await store.query_rollouts(status_in=["preparing", "running"]):
        if not isinstance(rollout, AttemptedRollout) or rollout.attempt.worker_id != worker:
            continue
        abandoned += 1
        attempt = rollout.attempt.attempt_id
        with contextlib.suppress(ValueError):  # it ended meanwhile, and was released
            await store.update_attempt(rollout.rollout_id, attempt, status="unresponsive")
    return abandoned
