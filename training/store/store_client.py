"""agent-lightning's client of the store, with the token, and patient with a slow network."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
from agentlightning import LightningStoreClient

from training.proxy.recorder import OUTAGE_SECONDS, store_session

LOOK_SECONDS = 0.5  # between two looks whether the store is there again
# Soon at first: every episode waits for some of its store's answers
RETRY_SECONDS = (0.1, 0.3, 1.0, 3.0, 5.0)


class StoreClient(LightningStoreClient):
    """A client whose every request carries the token, which travels with it."""

    def __init__(self, address: str, token: str | None = None) -> None:
        looks = int(OUTAGE_SECONDS / LOOK_SECONDS)
        super().__init__(
            address, retry_delays=RETRY_SECONDS, health_retry_delays=(LOOK_SECONDS,) * looks
        )
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
