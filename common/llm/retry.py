"""When an endpoint is asked again: its pauses, growing random waits, and one budget of time."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from common.llm.errors import LLMError

log = logging.getLogger(__name__)

Result = TypeVar("Result")

FIRST_WAIT = 0.5  # seconds at most; doubled at each further attempt
LONGEST_WAIT = 30.0  # seconds, unless the endpoint asks for more


@dataclass
class Patience:
    """How often and how long one endpoint is asked. All who ask it share one.

    `budget` is in seconds, for all attempts for one result with their waits. A pause that the
    endpoint asks for holds for all and, unless `pauses_count`, does not count as an attempt.
    """

    attempts: int
    budget: float
    longest_wait: float = LONGEST_WAIT
    pauses_count: bool = False
    busy_attempts: int = 0  # where it says 429, if they are more
    _resume: float = field(default=0.0, init=False)  # on the monotonic clock
    _told: bool = field(default=False, init=False)  # that it is busy

    async def ask(self, attempt: Callable[[], Awaitable[Result]], who: str) -> Result:
        """Return the result of the first attempt that succeeds. `who` names the endpoint.

        A pause longer than the budget ends only this call, at once. Raises LLMError: that of the
        last attempt, or "timeout" (with `retry_after` if the budget went into a pause).
        """
        ends = time.monotonic() + self.budget
        spread = min(FIRST_WAIT, self.longest_wait)
        failures = 0
        obeyed: float | None = None
        last: LLMError | None = None
        try:
            async with asyncio.timeout(self.budget):
                while True:
                    obeyed = self.paused or obeyed
                    await self._sit_out(ends, spread)
                    try:
                        return await attempt()
                    except LLMError as error:
                        last = error
                    if self.pauses_count or not last.retry_after:
                        failures += 1
                        most = self.busy_attempts if last.status == 429 and last.may_pass else 0
                        if failures >= max(self.attempts, most):
                            raise last
                        if most and not self._told:
                            self._told = True
                            log.warning("%s; it is asked again, which is said once", last)
                    await self._wait(last, ends, spread)
                    spread = min(self.longest_wait, 2 * spread)
        except TimeoutError:
            before = f"; before that: {last}" if last else ""
            raise LLMError(
                f"{who}: no usable answer within {self.budget:g} s{before}",
                "timeout",
                last.status if last else None,
                obeyed,
            ) from None

    async def _sit_out(self, ends: float, spread: float) -> None:
        """Wait until the endpoint's pause is over. Raises TimeoutError: that is after `ends`."""
        while self.paused:
            if self._resume >= ends:
                raise TimeoutError
            await asyncio.sleep(self.paused + random.uniform(0, spread))

    async def _wait(self, error: LLMError, ends: float, spread: float) -> None:
        """Note the pause that the error asks for, or wait. Raises `error`: asking is of no use."""
        pause = error.retry_after
        if not pause:
            wait = random.uniform(0, spread)
            if not error.may_pass or time.monotonic() + wait >= ends:
                raise error
            await asyncio.sleep(wait)
        elif pause > self.budget:
            raise TimeoutError
        else:  # a Retry-After near zero still waits FIRST_WAIT
            if not self._resume:
                log.warning("%s; all calls wait, which is said once", error)
            self._resume = max(self._resume, time.monotonic() + max(pause, FIRST_WAIT))

    @property
    def paused(self) -> float:
        """The seconds of the pause that are left."""
        return max(0.0, self._resume - time.monotonic())
