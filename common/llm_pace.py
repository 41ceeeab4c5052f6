"""When to ask an LLM endpoint (again): requests a minute, pauses the endpoint asks for, and waits between attempts.

common/llm.py is the only user.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from email.utils import parsedate_to_datetime

FIRST_WAIT = 0.5  # seconds; doubled at each further attempt
LONGEST_WAIT = 30.0  # seconds, unless the endpoint asks for more


class Pace:
    """Gives turns: at most so many a minute, evenly spread, and none during a pause."""

    def __init__(self, requests_per_minute: float | None) -> None:
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


def seconds_to_wait(attempt: int, retry_after: float | None) -> float:
    """Exponential wait with full jitter after attempt 1, 2, ..., and not before the time the endpoint named."""
    jitter = random.uniform(0, min(LONGEST_WAIT, FIRST_WAIT * 2**attempt))
    return jitter + (retry_after or 0.0)


def retry_after(header: str | None) -> float | None:
    """Seconds of a Retry-After header (RFC 9110, section 10.2.3: a number of seconds or a date), else None."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
