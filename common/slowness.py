"""Measure how many seconds the machine took from a process that was asked.

They are those in which it waited for a processor, was stopped, or a sleeping thread of this process
was not woken. What a process does by itself is not counted.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Lock, Thread

TICK = 0.05  # seconds between two looks of the watch
LATE = 0.05  # seconds by which the watch may be woken late
STOPPED = ("T", "t")  # states in /proc/PID/stat: by a signal, by a tracer


def waited(pid: int) -> float:
    """Return how many seconds a process's threads have waited for a processor, or 0 if unknown."""
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(path.read_text(encoding="ascii").split()[1])  # nanoseconds
        except (OSError, IndexError, ValueError):
            continue  # the thread has ended
    return total / 1e9


def is_stopped(pid: int) -> bool:
    """Return whether a process is stopped by a signal."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] in STOPPED


class Watch:
    """A thread that looks every TICK at the processes it was given, and at how late it is itself."""

    def __init__(self) -> None:
        self.lost = 0.0  # seconds by which it was woken too late, in all
        self.stopped: dict[int, float] = {}  # by process, seconds for which it was seen stopped
        self._asked: dict[int, int] = {}
        self._lock = Lock()
        self._thread: Thread | None = None

    def add(self, pid: int) -> None:
        """Look at a process until `remove` was called as often as this."""
        with self._lock:
            self._asked[pid] = self._asked.get(pid, 0) + 1
            self.stopped.setdefault(pid, 0.0)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="slowness", daemon=True)
                self._thread.start()

    def remove(self, pid: int) -> None:
        with self._lock:
            self._asked[pid] -= 1
            if not self._asked[pid]:
                del self._asked[pid], self.stopped[pid]

    def _run(self) -> None:
        last = time.monotonic()
        while True:
            time.sleep(TICK)
            now = time.monotonic()
            gap = now - last
            last = now
            with self._lock:
                self.lost += max(0.0, gap - TICK - LATE)
                if not self._asked:
                    self._thread = None
                    return
                for pid in self._asked:
                    if is_stopped(pid):
                        self.stopped[pid] += gap


WATCH = Watch()
os.register_at_fork(after_in_child=WATCH.__init__)  # type: ignore[misc]


class Slowness:
    """What the machine takes from one process from now on. `close` ends the watch."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        WATCH.add(pid)
        self._lost = WATCH.lost
        self._stopped = WATCH.stopped[pid]
        self._waited = self._known = waited(pid)

    def seconds(self) -> float:
        """Return the longest of the three measures, because they may count the same seconds."""
        self._known = max(self._known, waited(self.pid))  # nothing can be read of an ended process
        return max(
            self._known - self._waited,
            WATCH.stopped[self.pid] - self._stopped,
            WATCH.lost - self._lost,
        )

    def close(self) -> None:
        WATCH.remove(self.pid)
