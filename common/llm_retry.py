"""When an endpoint is asked (again): requests a minute, pauses it asks for, growing random waits, one budget of time.

rate = RateLimit(requests_per_minute=60)
reply = await persist(ask_once, "openai/NAME", attempts=5, timeout=60.0, rate=rate)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from common.llm_error import LLMError

Result = TypeVar("Result")

FIRST_WAIT = 0.5  # seconds at most; doubled at each further attempt
LONGEST_WAIT = 30.0  # seconds, unless the endpoint asks for more


class RateLimit:
    """Gives turns: at most so many a minute, evenly spread, and none during a pause."""

    def __init__(self, requests_per_minute: float | None = None) -> None:
        self._interval = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._next = 0.0  # on the monotonic clock

    async def turn(self) -> None:
        """Wait until a request may start."""
        now = time.monotonic()
        start = max(now, self._next)
        self._next = start + self._interval
        if start > now:
            await asyncio.sleep(start - now)

    def pause(self, seconds: float) -> None:
        """No turn begins before so many seconds have passed."""
        self._next = max(self._next, time.monotonic() + seconds)


async def persist(
    attempt: Callable[[], Awaitable[Result]],
    who: str,
    *,
    attempts: int,
    timeout: float,
    rate: RateLimit | None = None,
    longest_wait: float = LONGEST_WAIT,
) -> Result:
    """The result of the first attempt that succeeds; `who` is asked, for messages.

    `timeout` is the budget in seconds of all attempts and the waits between them; it starts after the first turn of
    `rate`. A pause that the endpoint asks for holds for everybody who shares the `rate`.

    Raises:
        LLMError: that of the last attempt, or of one that will not pass; or the budget is over.
    """
    from tenacity import (
        AsyncRetrying,
        retry_if_exception,
        stop_after_attempt,
        stop_before_delay,
        wait_random_exponential,
    )

    rate, jitter = rate or RateLimit(), wait_random_exponential(2 * FIRST_WAIT, longest_wait)
    last: LLMError | None = None

    async def next_attempt() -> Result:
        nonlocal last
        if last is not None:
            await rate.turn()
        try:
            return await attempt()
        except LLMError as error:
            last = error
            if error.retry_after is not None and error.retry_after <= timeout:
                rate.pause(error.retry_after)
            raise

    retrying = AsyncRetrying(
        stop=stop_after_attempt(attempts) | stop_before_delay(timeout),
        wait=lambda state: jitter(state) + ((last and last.retry_after) or 0.0),
        retry=retry_if_exception(lambda error: isinstance(error, LLMError) and error.may_pass),
        reraise=True,
    )
    await rate.turn()
    try:
        async with asyncio.timeout(timeout):
            return await retrying(next_attempt)
    except TimeoutError:
        before = f"; before that: {last}" if last else ""
        status = last.status if last else None
        raise LLMError(f"{who}: no usable answer within {timeout:g} s{before}", "timeout", status) from None
