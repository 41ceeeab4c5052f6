"""agent-lightning's client of the store, with the token, and patient with a slow network."""

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any

import aiohttp
from agentlightning import LightningStoreClient
from agentlightning.types import EnqueueRolloutRequest, Rollout

from training.proxy.recorder import OUTAGE_SECONDS, store_session

LOOK_SECONDS = 0.5  # between two looks whether the store is there again
# Soon at first: every episode waits for some of its store's answers
RETRY_SECONDS = (0.1, 0.3, 1.0, 3.0, 5.0)
MARK = "batch"  # of a rollout's metadata: with which others it was queued


class StoreClient(LightningStoreClient):
    """A client whose every request carries the token, which travels with it."""

    def __init__(
        self, address: str, token: str | None = None, retries: Sequence[float] = RETRY_SECONDS
    ) -> None:
        looks = int(OUTAGE_SECONDS / LOOK_SECONDS)
        super().__init__(address, retry_delays=retries, health_retry_delays=(LOOK_SECONDS,) * looks)
        self.token = token

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "token": self.token}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.token = state["token"]

    async def _get_session(self) -> aiohttp.ClientSession:
        loop = id(asyncio.get_running_loop())
        with self._lock:
            session = self._sessions.get(loop)
            if session is None or session.closed:
                session = self._sessions[loop] = store_session(self.token)
        return session

    async def enqueue_many_rollouts(
        self, rollouts: Sequence[EnqueueRolloutRequest]
    ) -> Sequence[Rollout]:
        """Send it once: where the answer is lost, ask what was taken before sending again."""
        mark = uuid.uuid4().hex
        marked = []
        for one in rollouts:
            metadata = {**(one.metadata or {}), MARK: mark}
            marked.append(one.model_copy(update={"metadata": metadata}))
        once = LightningStoreClient.enqueue_many_rollouts
        client = StoreClient(self.server_address_root, self.token, retries=())
        try:
            return await once(client, marked)
        except (aiohttp.ClientError, TimeoutError):
            known = await self.query_rollouts()
            taken = [rollout for rollout in known if (rollout.metadata or {}).get(MARK) == mark]
            return taken or await once(self, marked)
        finally:
            await client.close()
