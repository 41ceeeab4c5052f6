"""The clock of a program. It stops while the machine demonstrably keeps the program from running.

A program that sleeps, or competes with its own threads, uses up its time.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

MOST = 3  # deadlines until which a program that is held up is waited for: its own and two more
ENOUGH = 0.5  # of its deadline: a program that had as much in that time is too slow by itself
LATE = 0.2  # seconds by which a tick must be late to count. On a loaded machine it is by less


class Times(NamedTuple):
    """Seconds of an episode: processor time used, and each thread's wait for a processor."""

    used: float
    waited: dict[int, float]


class Clock:
    """Counts the time of one program from now on.

    read: gives the times of the episode's processes. late: seconds of delay from which a late tick
    is the machine's fault.
    """

    def __init__(
        self,
        deadline: float,
        read: Callable[[], Times],
        late: float = LATE,
        now: Callable[[], float] = time.monotonic,
        own: Callable[[], float] = time.process_time,
    ) -> None:
        self.deadline = deadline
        self.read = read
        self.now = now
        self.own = own
        self.late = late
        self.begun = self.beaten = now()
        self.worked = own()
        self.first = read()
        self.missed = 0.0
        self.end = self.begun + deadline  # before this nothing is judged

    def beat(self, asked: float) -> None:
        """Note that the supervisor is awake. The machine took what is beyond `asked` seconds."""
        now = self.now()
        worked = self.own()
        late = now - self.beaten - max(0.0, asked) - (worked - self.worked)
        if late > self.late:
            self.missed += late
        self.beaten = now
        self.worked = worked

    def verdict(self) -> str:
        """Return "" while time is left, "timeout", or "slow".

        "slow": after three deadlines the program has not had half of one, because of the machine.
        """
        elapsed = self.now() - self.begun
        if elapsed < self.deadline:
            return ""
        shown = self.shown(elapsed)
        had = elapsed - shown
        if elapsed >= MOST * self.deadline:
            return "timeout" if had >= ENOUGH * self.deadline else "slow"
        left = self.deadline - had
        self.end = self.now() + max(0.0, min(left, MOST * self.deadline - elapsed))
        return "timeout" if left <= 0 else ""

    def shown(self, elapsed: float) -> float:
        """Return the seconds for which the machine held the program up.

        Time with a processor does not count: each of 64 processes waits for the others.
        """
        times = self.read()
        longest = self.missed
        for thread, waited in times.waited.items():
            longest = max(longest, waited - self.first.waited.get(thread, 0.0))
        used = max(0.0, times.used - self.first.used)
        return max(0.0, min(longest, elapsed - used))


def times_of(processes: Callable[[], list[int]]) -> Times:
    """Return the times of these processes, without those that have ended."""
    used = 0.0
    waited = dict[int, float]()
    hertz = os.sysconf("SC_CLK_TCK")
    for number in processes():
        with suppress(OSError):
            with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            used += sum(map(int, fields[11:15])) / hertz  # its own and its buried children's
            for thread in os.listdir(f"/proc/{number}/task"):
                with open(f"/proc/{number}/task/{thread}/schedstat", encoding="ascii") as file:
                    waited[int(thread)] = int(file.read().split()[1]) / 1e9
    return Times(used, waited)
