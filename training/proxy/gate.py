"""Hold calls of the policy back while vLLM's weights change, and give them seeds if deterministic.

verl aborts calls when weights change, and those over HTTP cannot be continued. So a change waits
for the calls in flight (a turn, not the episode), and new ones wait for the change.
"""

import asyncio
import hashlib
import threading
import time
from collections import Counter
from typing import Any

import orjson

from training.setup.plan import RunStopped

SEEDS = 2**31
LOOK_SECONDS = 0.02  # between two looks of a call that waits


class CallGate:
    """Async context manager around a call. `close` and `open` are called from another thread."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._closed = False
        self._in_flight = 0
        self.left = 0.0  # when the latest call ended, by the monotonic clock

    async def __aenter__(self) -> None:
        while True:
            with self._state:
                if not self._closed:
                    self._in_flight += 1
                    return
            await asyncio.sleep(LOOK_SECONDS)

    async def __aexit__(self, *_: object) -> None:
        with self._state:
            self._in_flight -= 1
            self.left = time.monotonic()
            self._state.notify_all()

    def close(self, seconds: float) -> None:
        """Hold new calls back until none is in flight. Raises RunStopped: one takes too long."""
        with self._state:
            self._closed = True
            if not self._state.wait_for(lambda: self._in_flight == 0, timeout=seconds):
                raise RunStopped(
                    f"{self._in_flight} calls of the policy were not answered "
                    f"within {seconds:.0f} s, so its weights could not be "
                    "changed. Is vLLM alive? Its log is in the run folder's logs."
                )

    def open(self) -> None:
        """Let calls through again."""
        with self._state:
            self._closed = False


class RequestSeeds:
    """Give every call a seed that two runs agree on. Lives as long as the run's proxy.

    It follows from the run's seed, the weights, the conversation, and how often the same was asked
    before: episodes of a group are interchangeable.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.weights_of(0)

    def weights_of(self, step: int) -> None:
        """Note which step made the weights that vLLM serves from now on."""
        self._step = step
        self._asked: Counter[bytes] = Counter()

    def add(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request with a `seed`. Raises KeyError, TypeError: it is no conversation."""
        said = []
        for message in request["messages"]:
            # Without the random ids of the calls
            calls = [call["function"] for call in message.get("tool_calls") or []]
            said.append([message.get("role"), message.get("content"), calls])
        asked = hashlib.sha256(orjson.dumps([self.seed, self._step, said])).digest()
        number = self._asked[asked]
        self._asked[asked] += 1
        digest = hashlib.sha256(asked + number.to_bytes(4)).digest()
        return {**request, "seed": int.from_bytes(digest[:4]) % SEEDS}
