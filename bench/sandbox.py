"""Measure what the sandbox costs, against a fresh interpreter and against no sandbox at all.

    .venv/bin/python -m bench.sandbox                  # about a minute, one line of JSON last

`ms_median` and `ms_p99` are for a program of one line in a running episode. `first_ms` is for an
episode's first program, supervisor and interpreter included. `vs_subprocess` is how many times as
fast ours is as `python -c` that imports numpy and pandas, `vs_subprocess_first` the same for a
first program. `vs_in_process` (below 1) compares with exec in the same process. `runaway_gone_s` is
the time from the deadline until nothing is left of a program that ignores signals and has detached
children. `runs_per_s_N`: N episodes at once. `episode_mb`: memory of one more episode.
"""

import argparse
import asyncio
import contextlib
import io
import subprocess
import sys
import time
from functools import partial
from statistics import median, quantiles

import psutil

from bench._harness import at_once, main, seconds
from tools.sandbox import Run, Sandbox

LINE = "print(sum(range(100)))"
FRESH = [sys.executable, "-c", f"import numpy, pandas; {LINE}"]
RUNAWAY = """
import os, signal
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)
for _ in range(4):
    if os.fork() == 0:
        os.setpgid(0, 0)
        os.fork()
        break
while True:
    pass
"""
# Each round has a turn of every side
ROUNDS = 10
RUNS = 50
AT_ONCE = (1, 8, 64)
DEADLINE = 1.0  # seconds that the runaway program gets


def in_process() -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(LINE, "line", "exec"), {})


async def timed(sandbox: Sandbox, episode: str) -> float:
    """Return the seconds of the line in an episode, as its caller sees them."""
    start = time.perf_counter()
    done(await sandbox.run(LINE, episode))
    return time.perf_counter() - start


def done(run: Run) -> None:
    if run.status != "ok":
        raise RuntimeError(f"the sandbox ended a harmless program: {run}")


async def sides(sandbox: Sandbox) -> dict[str, float]:
    """Return the figures of the sides, measured in turn. The first turn of each only warms up."""
    ours = []
    first = []
    theirs = []
    within = []
    for number in range(ROUNDS + 1):
        first.append(await timed(sandbox, f"first {number}"))
        ours.append([await timed(sandbox, f"first {number}") for _ in range(RUNS)])
        await sandbox.end(f"first {number}")
        theirs.append(
            seconds(partial(subprocess.run, FRESH, check=True, stdout=subprocess.DEVNULL))
        )
        within.append(seconds(in_process, RUNS) / RUNS)
    runs = [value for values in ours[1:] for value in values]
    line = median(runs)
    begun = median(first[1:])
    fresh = median(theirs[1:])
    return {
        "ms_median": line * 1000,
        "ms_p99": quantiles(runs, n=100)[-1] * 1000,
        "first_ms": begun * 1000,
        "subprocess_ms": fresh * 1000,
        "vs_subprocess": fresh / line,
        "vs_subprocess_first": fresh / begun,
        "vs_in_process": median(within[1:]) / line,
    }


async def crowd(sandbox: Sandbox, in_flight: int) -> float:
    """Return runs a second with so many episodes at once, all of which have begun."""

    async def call(number: int) -> None:
        done(await sandbox.run(LINE, f"crowd {number % in_flight}"))

    await at_once(call, in_flight, in_flight)
    calls = max(200, 4 * in_flight)
    return calls / await at_once(call, calls, in_flight)


async def memory(sandbox: Sandbox, episodes: int = 64) -> float:
    """Return the bytes of the machine's memory that each of so many idle episodes takes."""
    before = psutil.virtual_memory().available
    for number in range(episodes):
        done(await sandbox.run(LINE, f"memory {number}"))
    after = psutil.virtual_memory().available
    for number in range(episodes):
        await sandbox.end(f"memory {number}")
    return (before - after) / episodes


async def runaway(sandbox: Sandbox) -> float:
    """Return the most seconds, of three tries, from the deadline to the end of a runaway."""
    me = psutil.Process()
    worst = 0.0
    for _ in range(3):
        done(await sandbox.run(LINE, "runaway"))
        quiet = len(me.children(recursive=True))
        end = time.perf_counter() + DEADLINE
        if (run := await sandbox.run(RUNAWAY, "runaway", deadline=DEADLINE)).status != "timeout":
            raise RuntimeError(f"the runaway did not run away: {run}")
        while len(me.children(recursive=True)) >= quiet:  # its interpreter ends, too
            await asyncio.sleep(0.002)
        worst = max(worst, time.perf_counter() - end)
    return worst


async def figures() -> dict[str, float]:
    sandbox = Sandbox()
    start = time.perf_counter()
    done(await sandbox.run(LINE, "start"))
    found = {"start_s": time.perf_counter() - start} | await sides(sandbox)
    found["episode_mb"] = await memory(sandbox) / 2**20
    for in_flight in AT_ONCE:
        found[f"runs_per_s_{in_flight}"] = await crowd(sandbox, in_flight)
    found["runaway_gone_s"] = await runaway(sandbox)
    await sandbox.close()
    return found


def measure(_: argparse.Namespace) -> dict[str, float]:
    return {name: round(value, 3) for name, value in asyncio.run(figures()).items()}


if __name__ == "__main__":
    main("sandbox", __doc__, measure)
