"""The processes that a test has started, without those of earlier tests, which end in their own
time.

    own = OwnProcesses()
    play()
    after_one = own.number()
    play()
    assert own.left(at_most=after_one) <= after_one
"""

from __future__ import annotations

import contextlib
import time

import psutil

PATIENCE_SECONDS = 60.0  # what is ended is not gone at once


class OwnProcesses:
    """The children of this process, and theirs, that came after this object."""

    def __init__(self) -> None:
        self._earlier = set(psutil.Process().children(recursive=True))

    def number(self) -> int:
        return len(self._now())

    def files(self) -> int:
        """Return how many files they have open together."""
        files = 0
        for process in self._now():
            with contextlib.suppress(psutil.NoSuchProcess):  # ended since
                files += process.num_fds()
        return files

    def _now(self) -> set[psutil.Process]:
        return set(psutil.Process().children(recursive=True)) - self._earlier

    def left(self, at_most: int) -> int:
        """Return how many there are when no more than `at_most` are left, or after a minute."""
        patience = time.monotonic() + PATIENCE_SECONDS
        while self.number() > at_most and time.monotonic() < patience:
            time.sleep(0.1)
        return self.number()
