"""A circuit breaker: a judge that keeps failing is left alone for a while, then asked with one call whether it is back.

    breaker = Breaker()
    if breaker.allows():
        with breaker.call() as call:        # an exception, and a call that says nothing, count as neither
            ...
            call.succeeded()                # or call.failed()

One per process and judge. Without it every episode of a dead judge would wait out the whole time budget.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

FAILURES = 5  # in a row, until the judge is left alone
PAUSE = 30.0  # seconds it is left alone


class Breaker:
    """Closed: calls pass. Open, after `failures` in a row: none for `pause` seconds. Half open: one call probes."""

    def __init__(
        self, failures: int = FAILURES, pause: float = PAUSE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit, self._pause, self._clock = failures, pause, clock
        self._failures = 0
        self._opened: float | None = None
        self._probing = False

    def allows(self) -> bool:
        """Whether a call may be made now."""
        if self._opened is None:
            return True
        return not self._probing and self._clock() - self._opened >= self._pause

    @contextmanager
    def call(self) -> Iterator[Breaker]:
        """Around a call that `allows` let pass; a call that is cancelled makes room for the next probe."""
        probe = self._opened is not None
        self._probing = self._probing or probe
        try:
            yield self
        finally:
            if probe:
                self._probing = False

    def succeeded(self) -> None:
        """The judge answered: calls pass again."""
        self._failures, self._opened = 0, None

    def failed(self) -> None:
        """The judge did not answer."""
        self._failures += 1
        if self._failures >= self._limit or self._opened is not None:
            self._opened = self._clock()
