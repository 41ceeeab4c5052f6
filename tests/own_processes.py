"""The processes that a test has started, without those of earlier tests, which end in their own
time.

    own = OwnProcesses()
    assert own.more_after(play) <= 0
"""

import contextlib
import time
from collections.abc import Callable

import psutil

PATIENCE_SECONDS = 60.0  # what is ended is not gone at once


class OwnProcesses:
    """The children of this process, and theirs, that came after this object."""

    def __init__(self) -> None:
        self._earlier = set(psutil.Process().children(recursive=True))

    def alive(self) -> set[psutil.Process]:
        return set(psutil.Process().children(recursive=True)) - self._earlier

    def files(self) -> int:
        """Return how many files they have open together."""
        files = 0
        for process in self.alive():
            with contextlib.suppress(psutil.NoSuchProcess):  # ended since
                files += process.num_fds()
        return files

    def left(self, at_most: int) -> int:
        """Return how many there are when no more than `at_most` are left, or after a minute."""
        patience = time.monotonic() + PATIENCE_SECONDS
        while len(self.alive()) > at_most and time.monotonic() < patience:
            time.sleep(0.1)
        return len(self.alive())

    def more_after(self, play: Callable[[], object]) -> int:
        """Return how many more there are after four plays than there were after the first."""
        play()
        after_one = len(self.alive())
        for _ in range(3):
            play()
        return self.left(at_most=after_one) - after_one
