"""Completions (not chat) of one model behind one or many addresses that share the work.

    client = Completions("EHRGenerator", ["http://a:8079/v1", "http://b:8079/v1"], api_key=None, timeout=60.0)
    text = await client.complete({"prompt": "...", "max_tokens": 512, "temperature": 0.0, "stop": ["<SEP>"]})

The least busy address is asked first. One that fails is left alone for a while, or as long as it
asks, and the next is asked at once. When all have failed, the whole round is tried again after a
growing wait (common/llm/retry.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from common.llm.endpoint import Body, Connections, without_secrets
from common.llm.errors import LLMError, clean
from common.llm.retry import Patience

# Rounds over all addresses, and the most seconds between two rounds
ATTEMPTS = 4
LONGEST_WAIT = 5.0
# Seconds that an address is left alone after a failure, and how often that time may double
REST = 10.0
DOUBLED = 5
ABOUT_THE_REQUEST = (400, 413, 422)  # statuses that every address would answer with


class Address:
    """One base URL, with the number of its requests in flight, and until when (monotonic clock) it
    is left alone.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.busy = self.failures = 0
        self.rests_until = 0.0

    def rest(self, error: LLMError) -> None:
        """Leave this address alone for a while; requests that fail together count as
        one failure.
        """
        now = time.monotonic()
        if self.rests_until <= now:
            self.failures += 1
            self.rests_until = now + REST * 2 ** min(self.failures - 1, DOUBLED)
        self.rests_until = max(self.rests_until, now + (error.retry_after or 0))

    def answered(self) -> None:
        """Forget earlier failures of this address."""
        self.failures = 0
        self.rests_until = 0.0


class Completions:
    """A client of one model. `timeout` is the budget in seconds of one completion; with several
    addresses, none of them may take more than half of it.
    """

    def __init__(
        self, model: str, urls: Sequence[str], api_key: str | None = None, timeout: float = 60.0
    ) -> None:
        self.model = model
        self.api_key = api_key
        self.addresses = [Address(url) for url in urls]
        self._timeout = timeout / min(2, len(self.addresses))
        self._patience = Patience(ATTEMPTS, timeout, LONGEST_WAIT)
        self._connections = Connections()

    async def complete(self, body: Body, read: Callable[[str], str] = str.strip) -> str:
        """Return what `read` makes of the text of one completion of OpenAI's `body` (without
        `model`); if it returns "", the completion counts as unusable.

        Raises LLMError: after the attempts or the budget.
        """
        return await self._patience.ask(lambda: self._round(body, read), self.model)

    async def _round(self, body: Body, read: Callable[[str], str]) -> str:
        """Return the completion of the first address that succeeds."""
        failed: list[LLMError] = []
        for address in self._in_turn():
            address.busy += 1
            try:
                text = await self._request(address, body, read)
                address.answered()
                return text
            except LLMError as error:
                if error.status in ABOUT_THE_REQUEST:
                    raise
                address.rest(error)
                failed.append(error)
            finally:
                address.busy -= 1
        raise next((error for error in failed if error.may_pass), failed[-1])

    def _in_turn(self) -> list[Address]:
        """Return the addresses that do not rest, or else the one that has rested longest."""
        now = time.monotonic()
        awake = [address for address in self.addresses if address.rests_until <= now]
        return sorted(awake, key=lambda one: one.busy) or [
            min(self.addresses, key=lambda one: one.rests_until)
        ]

    async def _request(self, address: Address, body: Body, read: Callable[[str], str]) -> str:
        how: dict[str, Any] = {"timeout": self._timeout, "key": self.api_key}
        reply = await self._connections.post(
            f"{address.url}/completions", {"model": self.model, **body}, **how
        )
        try:
            if text := read(reply["choices"][0]["text"]):
                return text
        except (LookupError, TypeError, AttributeError):
            pass  # the error is raised below
        who = without_secrets(address.url)
        words = clean(str(reply), self.api_key)
        raise LLMError(f"{who}: expected a completion, got {words}", "malformed")
