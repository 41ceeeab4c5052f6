"""When an endpoint is asked, and asked again: requests a minute, the pauses it asks for, growing
random waits, and one budget of time.

rate = RateLimit(requests_per_minute=60)
reply = await persist(ask_once, "openai/NAME", attempts=5, timeout=60.0, rate=rate)
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from common.llm_error import LLMError

Result = TypeVar("Result")

FIRST_WAIT = 0.5  # seconds at most; doubled at each further attempt
LONGEST_WAIT = 30.0  # seconds, unless the endpoint asks for more


class RateLimit:
    """Spreads requests evenly, at most so many a minute, and remembers the pause that an endpoint
    asked for.
    """

    def __init__(self, requests_per_minute: float | None = None) -> None:
        self._interval = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._next = self._resume = 0.0  # on the monotonic clock

    async def turn(self) -> None:
        """Wait until a request may start."""
        now = time.monotonic()
        start = max(now, self._next)
        self._next = start + self._interval
        if start > now:
            await asyncio.sleep(start - now)

    def pause(self, seconds: float) -> None:
        """Let no request start for so many seconds."""
        self._resume = max(self._resume, time.monotonic() + seconds)

    @property
    def paused(self) -> float:
        """The seconds of the pause that are left."""
        return max(0.0, self._resume - time.monotonic())

    async def resumed(self, spread: float, ends: float) -> None:
        """Wait out the pause and up to `spread` seconds more, because the endpoint may ask the
        first callers to wait again.

        Raises TimeoutError at once if the pause lasts beyond `ends`, on the monotonic clock.
        """
        while self.paused:
            if self._resume >= ends:
                raise TimeoutError
            await asyncio.sleep(self.paused + random.uniform(0, spread))


async def persist(
    attempt: Callable[[], Awaitable[Result]],
    who: str,
    *,
    attempts: int,
    timeout: float,
    rate: RateLimit | None = None,
    longest_wait: float = LONGEST_WAIT,
    pauses_count: bool = False,
) -> Result:
    """Return the result of the first attempt that succeeds. `who` names the endpoint in messages.

    `timeout` is the budget in seconds of all attempts and the waits between them; it starts after
    the first turn of `rate`. A pause that the endpoint asks for holds for all who share the `rate`
    and does not count as an attempt, unless `pauses_count`. A pause longer than the budget ends this call at once, and
    only this one.

    Raises:
        LLMError: that of the last attempt, or of one that will not pass; or the budget is over
            (cause "timeout", with `retry_after` if it went into a pause).
    """
    rate = rate or RateLimit()
    await rate.turn()
    ends = time.monotonic() + timeout
    spread = min(FIRST_WAIT, longest_wait)
    failures = 0
    obeyed: float | None = None
    last: LLMError | None = None
    try:
        async with asyncio.timeout(timeout):
            while True:
                obeyed = rate.paused or obeyed
                await rate.resumed(spread, ends)
                try:
                    return await attempt()
                except LLMError as error:
                    last = error
                if pauses_count or not last.retry_after:
                    failures += 1
                    if failures == attempts:
                        raise last
                if not last.retry_after:
                    wait = random.uniform(0, spread)
                    if not last.may_pass or time.monotonic() + wait >= ends:
                        raise last
                    await asyncio.sleep(wait)
                elif last.retry_after <= timeout:
                    # A Retry-After near zero still waits FIRST_WAIT.
                    rate.pause(max(last.retry_after, FIRST_WAIT))
                else:
                    raise TimeoutError
                spread = min(longest_wait, 2 * spread)
                await rate.turn()
    except TimeoutError:
        before = f"; before that: {last}" if last else ""
        status = last.status if last else None
        raise LLMError(
            f"{who}: no usable answer within {timeout:g} s{before}", "timeout", status, obeyed
        ) from None
