"""The command line and the clock of every bench. It prints one line of JSON last.

Other output of a measurement goes to standard error.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import shlex
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from statistics import median
from typing import Any, TypeVar

import psutil

from common.stopping import stop_in_order
from common.terminal import watched
from evaluation.report.demo import commit

Sample = TypeVar("Sample")


def main(
    name: str,
    doc: str,
    measure: Callable[[argparse.Namespace], Mapping[str, Any]],
    flags: Mapping[str, dict[str, Any]] | None = None,
) -> None:
    """Parse `flags` (argparse's arguments by name), measure, and print the figures."""
    stop_in_order()
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog=f".venv/bin/python -m bench.{name}", description=doc, formatter_class=form
    )
    for flag, arguments in (flags or {}).items():
        parser.add_argument(flag, **arguments)
    options = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr):
        figures = measure(options)
    memory = f"{psutil.virtual_memory().total / 2**30:.0f} GiB"
    machine = f"{os.cpu_count()} cores, {memory}, {platform.machine()}"
    measured = {
        "bench": name,
        "command": shlex.join(["python", "-m", f"bench.{name}", *sys.argv[1:]]),
        "commit": commit(),
        "machine": machine,
    }
    print(json.dumps({**measured, **figures}, ensure_ascii=False))


def seconds(call: Callable[[], Any], calls: int = 1) -> float:
    """Return the wall-clock seconds of so many calls, one after another."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - start


def medians(sides: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return the median of every side's seconds. Sides take turns, the first only to warm up."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in watched(range(rounds + 1), "measuring", "rounds"):
        for name, side in sides.items():
            taken[name].append(side())
    return {name: median(values[1:]) for name, values in taken.items()}


async def at_once(call: Callable[[int], Awaitable[None]], calls: int, in_flight: int) -> float:
    """Return the seconds of `calls` calls, each given its number, with so many in flight."""
    waiting = iter(range(calls))

    async def worker() -> None:
        for number in waiting:
            await call(number)

    start = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(in_flight)))
    return time.perf_counter() - start


@contextlib.contextmanager
def sampled(look: Callable[[], Sample], every: float) -> Iterator[list[Sample]]:
    """Yield a list that grows by what `look` returns, now and every so many seconds."""
    seen = [look()]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(every):
            seen.append(look())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()
