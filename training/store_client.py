"""agent-lightning's client of the store, with the token, and patient with a store that is started again.

    store = StoreClient("http://127.0.0.1:4747", token)

A request that finds no store waits for one as long as spans are kept for it (`training.recorder`); agent-lightning's
own client gives up within a second, and the run with it.
"""

from __future__ import annotations

from typing import Any

import aiohttp
from agentlightning import LightningStoreClient

from common.access import bearer
from training.recorder import OUTAGE_SECONDS

LOOK_SECONDS = 0.5  # between two looks whether the store is there again


class StoreClient(LightningStoreClient):
    """Every request carries the token, if there is one; it travels with the client to other processes."""

    def __init__(self, address: str, token: str | None = None) -> None:
        looks = int(OUTAGE_SECONDS / LOOK_SECONDS)
        super().__init__(address, health_retry_delays=(LOOK_SECONDS,) * looks)
        self.token = token

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "token": self.token}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.token = state["token"]

    async def _get_session(self) -> aiohttp.ClientSession:
        session = await super()._get_session()
        session.headers.update(bearer(self.token))
        return session
