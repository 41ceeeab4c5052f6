"""Holds the policy's calls back while its weights change, so that every call is answered by one version of them.

verl's asynchronous modes abort what vLLM is generating when weights change, and continue it from its tokens. Calls that
come over HTTP cannot be continued, so here a change waits for the calls in flight (an episode's turn, not the episode)
and new ones wait for the change. Used by `training.middleware` (one call) and the trainer (a change of weights).
"""

from __future__ import annotations

import asyncio
import threading

from training.watch import RunStopped


class CallGate:
    """Async context manager around a call; `close` and `open` are called from another thread."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._closed = False
        self._in_flight = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def __aenter__(self) -> None:
        while (reopened := self._enter()) is not None:
            await reopened

    async def __aexit__(self, *_: object) -> None:
        with self._state:
            self._in_flight -= 1
            self._state.notify_all()

    def close(self, seconds: float) -> None:
        """Hold new calls back and wait until none is in flight.

        Raises:
            RunStopped: a call took longer than `seconds`.
        """
        with self._state:
            self._closed = True
            if not self._state.wait_for(lambda: self._in_flight == 0, timeout=seconds):
                raise RunStopped(
                    f"{self._in_flight} calls of the policy were not answered within {seconds:.0f} s, so its weights "
                    "could not be changed. Is vLLM alive? Its log is in the run folder's logs."
                )

    def open(self) -> None:
        """Let calls through again; the order in which they waited is kept."""
        with self._state:
            self._closed = False
            waiting, self._waiting = self._waiting, []
        for future in waiting:
            future.get_loop().call_soon_threadsafe(_wake, future)

    def _enter(self) -> asyncio.Future[None] | None:
        """Count a call as in flight, or return what to wait for before trying again."""
        with self._state:
            if not self._closed:
                self._in_flight += 1
                return None
            reopened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(reopened)
            return reopened


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():  # a caller may have gone away meanwhile
        future.set_result(None)
