"""Draw as text which processes a command starts, when, and when each of them works.

Each process that worked for half a second or more has a row: when it began and how long it worked,
in seconds, and for every CELL seconds a mark: `#` if it worked for more than half of them, `+` for
more than a tenth, `.` if it existed.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

EVERY = 0.25
CELL = 1.0
LEAST_WORK = 0.5
MARKS = ((0.5, "#"), (0.1, "+"), (-1.0, "."))


@dataclass(frozen=True)
class Seen:
    """A process at a moment (Unix seconds): its title, its birth, and the seconds it had worked."""

    title: str
    born: float
    worked: float
    at: float


def processes_below(pid: int) -> dict[int, Seen]:
    """Return the process and everything below it that it has started."""
    found = {}
    try:
        above = psutil.Process(pid)
        family = [above, *above.children(recursive=True)]
    except psutil.NoSuchProcess:
        return {}
    for process in family:
        try:
            cpu = process.cpu_times()
            found[process.pid] = Seen(
                title_of(process), process.create_time(), cpu.user + cpu.system, time.time()
            )
        except psutil.NoSuchProcess:
            continue
    return found


def title_of(process: psutil.Process) -> str:
    """Return a process's title. Raises NoSuchProcess: it has ended, or is a zombie."""
    words = process.cmdline()
    return " ".join([Path(words[0]).name, *words[1:]])[:60] if words else process.name()


def draw(samples: Sequence[Mapping[int, Seen]], began: float, until: float) -> str:
    """Return the rows, in the order of birth, from `began` to `until` (Unix seconds)."""
    histories: dict[int, list[Seen]] = {}
    for sample in samples:
        for pid, seen in sample.items():
            if seen.at <= until:
                histories.setdefault(pid, []).append(seen)
    working = [history for history in histories.values() if history[-1].worked >= LEAST_WORK]
    rows = []
    for history in sorted(working, key=lambda history: history[0].born):
        first = history[0]
        last = history[-1]
        cells = int((until - began) / CELL) + 1
        marks = "".join(_mark(history, began + cell * CELL) for cell in range(cells))
        rows.append(
            f"{last.title[:32]:32} {first.born - began:6.1f} {last.worked:6.1f} {marks}".rstrip()
        )
    return "\n".join([f"{'process':32} {'born':>6} {'worked':>6}", *rows])


def _mark(history: Sequence[Seen], begin: float) -> str:
    if begin + CELL <= history[0].born or begin > history[-1].at:
        return " "
    share = (_worked(history, begin + CELL) - _worked(history, begin)) / CELL
    return next(mark for least, mark in MARKS if share > least)


def _worked(history: Sequence[Seen], at: float) -> float:
    before = history[0].born
    work = 0.0
    for seen in history:
        if seen.at >= at:
            return work + (seen.worked - work) * max(0.0, at - before) / max(seen.at - before, 1e-9)
        before = seen.at
        work = seen.worked
    return work
